use workload::{Operation, Request, Requests};

/// The source of a worker's requests.
#[derive(Debug)]
pub(crate) enum Source {
    /// Requests of a mix; `left` of them are still to be sent.
    Mix { requests: Box<Requests>, left: u64 },
    /// Inserts of every `step`th record below `end`.
    Fill { next: u64, step: u64, end: u64 },
}

impl Source {
    /// The next request; `None` if there are no more.
    pub(crate) fn next_request(&mut self) -> Option<Request> {
        match self {
            Self::Mix { left: 0, .. } => None,
            Self::Mix { requests, left } => {
                *left -= 1;
                Some(requests.next_request())
            }
            Self::Fill { next, step, end } => {
                let record = *next;
                *next += *step;
                let operation = Operation::Insert;
                (record < *end).then_some(Request { operation, record, count: 1, version: 0 })
            }
        }
    }

    /// Notes that the insert of `record` has been answered.
    pub(crate) fn acknowledge(&mut self, record: u64) {
        if let Self::Mix { requests, .. } = self {
            requests.acknowledge(record);
        }
    }
}
