//! The observers of a run: the live line, the record of faults, the control socket.

use console::terminal;
use farmem::{FaultEvent, Observer, Retune, Snapshot};

use crate::control::Control;
use crate::live::LiveLine;
use crate::record::Recorder;

/// All observers of a run.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    pub(crate) live: Option<LiveLine>,
    pub(crate) recorder: Option<Recorder>,
    pub(crate) control: Option<Control>,
}

impl Observer for Watch {
    fn tick(&mut self, snapshot: &Snapshot) -> Vec<Retune> {
        if let Some(live) = &mut self.live {
            live.update(snapshot);
        }
        let control = self.control.as_mut();
        control.map_or_else(Vec::new, |control| control.poll(snapshot))
    }

    fn faults(&mut self, faults: &[FaultEvent]) {
        if let Some(recorder) = &mut self.recorder {
            recorder.take(faults);
        }
    }

    fn news(&mut self, text: &str) {
        self.live.iter_mut().for_each(LiveLine::clear);
        terminal::say(&format!("afar run: {text}\n"));
    }
}
