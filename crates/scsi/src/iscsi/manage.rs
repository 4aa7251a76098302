//! Requests to a session other than commands: pings, task management, logout (RFC 7143 11.5, 11.9,
//! 11.14, 11.18).

use super::pdu::{AsyncMessage, Header, NO_TAG, TaskRequest, trailer};
use super::session::{Arrival, Coming, Logout, Management, Reject, Session, Turn};
use super::task::{Outstanding, Task};

impl Session {
    /// Takes a NOP-Out: an answer to a ping of this end, or a ping to answer.
    pub(super) fn nop<'a>(
        &mut self,
        number: u16,
        [is_immediate, has_data]: [bool; 2],
        lun: [u8; 8],
        itt: u32,
        out: &mut Vec<u8>,
    ) -> Option<Arrival<'a>> {
        let connection = self.connection_mut(number)?;
        if itt == NO_TAG {
            // 11.18: the answer to this end's ping is immediate and has no tag.
            let is_answer = is_immediate && connection.pings > 0;
            connection.pings = connection.pings.saturating_sub(1);
            return is_answer.then_some(Arrival::Pong);
        }
        connection.gathered.clear();
        if has_data {
            connection.coming = Coming::Ping { itt, lun };
        } else {
            self.send_ping_back(number, itt, lun, out);
        }
        None
    }

    /// Answers a ping with its data.
    pub(crate) fn send_ping_back(
        &mut self,
        number: u16,
        itt: u32,
        lun: [u8; 8],
        out: &mut Vec<u8>,
    ) {
        let window = self.answer_window(number, true);
        let Some(connection) = self.connection_mut(number) else { return };
        let data = std::mem::take(&mut connection.gathered);
        Header::NopIn { lun, itt, ttt: NO_TAG, window }.encode(connection.digests, data.len(), out);
        out.extend_from_slice(&data);
        trailer(&data, connection.digests, out);
    }

    /// Pings the initiator (11.19); the answer is [`Arrival::Pong`].
    pub fn ping(&mut self, number: u16, out: &mut Vec<u8>) {
        let window = self.answer_window(number, false);
        let Some(connection) = self.connection_mut(number) else { return };
        connection.pings += 1;
        // With the reserved tag the initiator would not answer.
        let ttt = connection.pings;
        let ping = Header::NopIn { lun: [0; 8], itt: NO_TAG, ttt, window };
        ping.encode(connection.digests, 0, out);
    }

    /// Takes a task management request.
    pub(super) fn manage<'a>(
        &mut self,
        number: u16,
        request: TaskRequest,
        out: &mut Vec<u8>,
    ) -> Option<Arrival<'a>> {
        let is_full = self.managed.len() >= usize::from(self.limits.immediate.max(1));
        if is_full || self.is_discovery {
            let reason = if is_full { Reject::TooManyImmediate } else { Reject::Protocol };
            self.reject(number, reason, out);
            return None;
        }
        self.next_managed = self.next_managed.wrapping_add(1);
        let management = Management(self.next_managed);
        self.managed.push((management, number, request.itt));
        Some(Arrival::Manage(management, request))
    }

    /// The connection on which a task management request is answered.
    #[must_use]
    pub fn connection_of_management(&self, management: Management) -> Option<u16> {
        self.managed.iter().find(|one| one.0 == management).map(|one| one.1)
    }

    /// The tasks of this session that a task management request affects, including those that
    /// were aborted before and have not ended: those with a tag for ABORT TASK (1), those of a
    /// logical unit for ABORT TASK SET (2), CLEAR TASK SET (4) and LOGICAL UNIT RESET (5), all for
    /// a reset of the target (6, 7) (11.5.1).
    #[must_use]
    pub fn affected(&self, request: &TaskRequest) -> Vec<Task> {
        match request.function {
            1 => {
                let has_tag =
                    |(_, one): &(Task, &Outstanding)| one.command.itt == request.referenced;
                self.tasks.iter().filter(has_tag).map(|(task, _)| task).collect()
            }
            2 | 4 | 5 => {
                let of = |(_, one): &(Task, &Outstanding)| one.command.lun == request.lun;
                self.tasks.iter().filter(of).map(|(task, _)| task).collect()
            }
            6 | 7 => self.tasks.iter().map(|(task, _)| task).collect(),
            _ => Vec::new(),
        }
    }

    /// Whether ABORT TASK is for a command that has not arrived but still may. If so, its CmdSN
    /// counts as received, and the command is dropped when it arrives (11.6.1).
    pub fn forestall(&mut self, request: &TaskRequest) -> bool {
        let number = request.ref_cmd_sn;
        // Serial numbers (RFC 1982): it was sent before the request.
        let is_before = (1..1 << 31).contains(&request.numbers.cmd_sn.wrapping_sub(number));
        let is_open = self.turn(number) != Turn::Never || self.forestalled.contains(&number);
        if request.function != 1 || !is_before || !is_open {
            return false;
        }
        // Its data is dropped, too.
        self.tasks.remember_early(request.referenced);
        self.count(number);
        true
    }

    /// Counts a CmdSN as received, and moves ExpCmdSN past all that are.
    pub(super) fn count(&mut self, cmd_sn: u32) {
        if cmd_sn == self.exp_cmd_sn {
            self.exp_cmd_sn = cmd_sn.wrapping_add(1);
        } else {
            self.forestalled.insert(cmd_sn);
        }
        while self.forestalled.remove(&self.exp_cmd_sn) {
            self.exp_cmd_sn = self.exp_cmd_sn.wrapping_add(1);
        }
    }

    /// Marks a task as aborted: it gets no answer. Its slot is free once its owner completes it.
    pub fn abort(&mut self, task: Task) {
        self.tasks.abort(task);
    }

    /// Answers a task management request (11.6.1): 0 done, 1 no such task, 2 no such logical unit,
    /// 5 not supported, 255 refused.
    pub fn answer_management(&mut self, management: Management, response: u8, out: &mut Vec<u8>) {
        let Some(index) = self.managed.iter().position(|one| one.0 == management) else { return };
        let (_, number, itt) = self.managed.swap_remove(index);
        let window = self.answer_window(number, true);
        let Some(connection) = self.connection(number) else { return };
        Header::TaskResponse { response, itt, window }.encode(connection.digests, 0, out);
    }

    // Takes a logout request (11.14.1): reason 0 ends the session, 1 a connection; 2, a connection
    // that is to be recovered, is refused. Tasks that it ends are aborted; the response waits for
    // them ([`Self::finish_logout`]).
    pub(super) fn logout<'a>(
        &mut self,
        number: u16,
        reason: u8,
        [itt, cid]: [u32; 2],
        out: &mut Vec<u8>,
    ) -> Option<Arrival<'a>> {
        let named = self.connections().find(|one| u32::from(one.1) == cid).map(|one| one.0);
        let logout = match (reason, named) {
            (0, _) => Logout::Session,
            (1, Some(named)) => Logout::Connection(named),
            (1, None) => {
                self.logout_response(number, itt, 1, out);
                return None;
            }
            _ => {
                self.logout_response(number, itt, 2, out);
                return None;
            }
        };
        let tasks: Vec<Task> = match logout {
            Logout::Session => self.tasks.iter().map(|(task, _)| task).collect(),
            Logout::Connection(named) => self.tasks_of(named).collect(),
        };
        tasks.into_iter().for_each(|task| self.tasks.abort(task));
        self.connection_mut(number)?.logout = Some((itt, logout));
        Some(Arrival::Logout(logout))
    }

    /// Answers the logout that came on this connection once all tasks that it aborted have ended.
    /// The caller closes the session or connection that this returns when `out` is sent.
    pub fn finish_logout(&mut self, number: u16, out: &mut Vec<u8>) -> Option<Logout> {
        let (itt, logout) = self.connection(number)?.logout?;
        let is_busy = match logout {
            Logout::Session => self.tasks.len() > 0,
            Logout::Connection(named) => self.tasks_of(named).next().is_some(),
        };
        if is_busy {
            return None;
        }
        self.logout_response(number, itt, 0, out);
        Some(logout)
    }

    // Appends a Logout Response.
    fn logout_response(&mut self, number: u16, itt: u32, response: u8, out: &mut Vec<u8>) {
        let window = self.answer_window(number, true);
        let Some(connection) = self.connection(number) else { return };
        Header::LogoutResponse { response, itt, window }.encode(connection.digests, 0, out);
    }

    /// Tells the initiator of an event (11.9.1): 1 asks it to log out within `parameters[2]`
    /// seconds, 2 and 3 say that a connection, or all, will be closed.
    pub fn announce(&mut self, number: u16, event: u8, parameters: [u16; 3], out: &mut Vec<u8>) {
        let window = self.answer_window(number, true);
        let Some(connection) = self.connection(number) else { return };
        let message = AsyncMessage { lun: [0; 8], window, event, parameters };
        Header::Async(message).encode(connection.digests, 0, out);
    }
}
