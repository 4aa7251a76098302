use workload::{Operation, Request, Requests};

/// Where the requests of a worker come from.
#[derive(Debug)]
pub(crate) enum Source {
    /// A mix, so many times.
    Mix { requests: Box<Requests>, left: u64 },
    /// Every `step`th record below `end`, once.
    Fill { next: u64, step: u64, end: u64 },
}

impl Source {
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

    /// A record has been stored.
    pub(crate) fn acknowledge(&mut self, record: u64) {
        if let Self::Mix { requests, .. } = self {
            requests.acknowledge(record);
        }
    }
}
