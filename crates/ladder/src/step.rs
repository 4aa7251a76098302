//! The cells: where pages go, how they are asked for, and in which direction.

use std::path::Path;
use std::process::Command;

use measure::Duration;

/// The size of a page, in bytes.
pub const PAGE: u64 = 4096;
/// Threads of the asynchronous rung.
pub const THREADS: u64 = 4;
/// One in this many pages is local.
const LOCAL: u64 = 4;
/// About what a touch takes, in nanoseconds.
const TOUCH_NS: u64 = 20_000;
/// How long a thread spins for a page that it asks for alone, where it may spin at all.
pub const SPIN_MAX: &str = "40us";

/// Where pages are when they are not local.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// In afar itself: trap, supervisor and copy, without a network.
    Memory,
    /// On a target, over NVMe/TCP.
    Nvme,
    /// In the kernel's swap space, a compressed disk of memory.
    Swap,
}

/// How pages are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rung {
    /// One page at a time.
    Single,
    /// Neighbours go as one request.
    Merged,
    /// Larger requests of several threads, all under way at the same time.
    Asynchronous,
}

/// The direction of pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Pages are fetched.
    In,
    /// Pages are written back.
    Out,
}

/// One kind of run with far memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Where pages are.
    pub way: Way,
    /// How they are asked for.
    pub rung: Rung,
    /// Whether they come or go.
    pub direction: Direction,
}

/// What is measured once in every block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cell {
    /// A program runs with far memory.
    Far(Step),
    /// A bare echo over TCP.
    Echo,
    /// A minor fault of the kernel, without afar.
    Minor,
}

/// How much is touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Pages of the program; a quarter of them is local.
    pub pages: u64,
    /// Touches that are timed when pages come in.
    pub touches: u64,
    /// Pages that are touched for the first time when pages go out.
    pub fresh: u64,
    /// Requests of the echo.
    pub echoes: u64,
}

/// What a run needs to know of the machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Means<'a> {
    /// The blade that is not in afar.
    pub(crate) uri: &'a str,
    /// The processor of the program, and that of supervisor and target; `None` for any.
    pub(crate) places: Option<[usize; 2]>,
    /// Whether a thread may spin for a page.
    pub(crate) spins: bool,
    /// How much is touched.
    pub(crate) size: Size,
}

impl Way {
    /// All ways.
    pub const ALL: [Self; 3] = [Self::Memory, Self::Nvme, Self::Swap];

    /// Its name in files and records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Nvme => "nvme",
            Self::Swap => "swap",
        }
    }

    /// Its name in tables and pictures.
    #[must_use]
    pub const fn told(self) -> &'static str {
        match self {
            Self::Memory => "--far memory",
            Self::Nvme => "--far nvme+tcp",
            Self::Swap => "--engine swap (zram)",
        }
    }
}

impl Rung {
    /// All rungs, from the bottom up.
    pub const ALL: [Self; 3] = [Self::Single, Self::Merged, Self::Asynchronous];

    /// Its name in files and records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::Merged => "merged",
            Self::Asynchronous => "asynchronous",
        }
    }

    /// Its name in tables and pictures.
    #[must_use]
    pub const fn told(self) -> &'static str {
        match self {
            Self::Single => "one page at a time",
            Self::Merged => "merged",
            Self::Asynchronous => "asynchronous",
        }
    }
}

impl Direction {
    /// Both directions.
    pub const ALL: [Self; 2] = [Self::In, Self::Out];

    /// Its name in files and records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::In => "in",
            Self::Out => "out",
        }
    }
}

impl Cell {
    /// All cells.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let mut all = vec![Self::Echo, Self::Minor];
        for way in Way::ALL {
            for rung in Rung::ALL {
                let steps = Direction::ALL.map(|direction| Step { way, rung, direction });
                all.extend(steps.into_iter().filter(|step| step.exists()).map(Self::Far));
            }
        }
        all
    }

    /// Its name in files and records.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Far(Step { way, rung, direction }) => {
                format!("{}-{}-{}", way.name(), rung.name(), direction.name())
            }
            Self::Echo => "echo".to_owned(),
            Self::Minor => "minor".to_owned(),
        }
    }
}

impl Size {
    /// The usual size, smaller with `is_quick`. `time` is about how long a run is to take, in place
    /// of what is usual.
    #[must_use]
    pub fn new(is_quick: bool, time: Option<Duration>) -> Self {
        let usual = match is_quick {
            true => Self { pages: 8192, touches: 24_576, fresh: 32_768, echoes: 4_000 },
            false => Self { pages: 16_384, touches: 98_304, fresh: 98_304, echoes: 20_000 },
        };
        let Some(time) = time else { return usual };
        let touches = (time.as_ns() / TOUCH_NS).max(1);
        Self { touches, fresh: usual.local() + touches, echoes: touches, ..usual }
    }

    /// Pages that are local.
    #[must_use]
    pub const fn local(&self) -> u64 {
        self.pages / LOCAL
    }

    /// Bytes that a run has to move while touches are timed.
    #[must_use]
    pub const fn wanted(&self, direction: Direction) -> u64 {
        match direction {
            Direction::In => self.touches * PAGE,
            Direction::Out => (self.fresh - self.local()) * PAGE,
        }
    }
}

impl Step {
    /// Whether it can be measured. The kernel decides by itself how swapped pages go out.
    const fn exists(self) -> bool {
        !matches!(
            (self.way, self.direction, self.rung),
            (Way::Swap, Direction::Out, Rung::Single | Rung::Merged)
        )
    }

    /// Its command. The record of the run goes to `record`, the times of touches to `touches`.
    pub(crate) fn command(self, means: &Means<'_>, record: &Path, touches: &Path) -> Command {
        let mut command = launch::afar();
        command.args(["run", "--quiet", "--json"]).arg(record).args(self.flags(means));
        command.arg("--");
        if let Some([first, _]) = means.places {
            command.args(["taskset", "-c", &first.to_string()]);
        }
        command.arg(launch::program()).args(self.program(means.size)).arg("--output").arg(touches);
        command
    }

    /// The flags of the run.
    fn flags(self, means: &Means<'_>) -> Vec<String> {
        let mut words = format!("--local {}", means.size.local() * PAGE);
        match self.way {
            Way::Memory => {
                let most = means.size.pages.max(means.size.fresh) * PAGE;
                words += &format!(" --far memory:{}", 2 * most);
            }
            Way::Nvme => words += &format!(" --far {}", means.uri),
            Way::Swap => {
                words += " --engine swap --page-cluster ";
                words += match self.rung {
                    Rung::Single => "0",
                    Rung::Merged => "3",
                    Rung::Asynchronous => "5",
                };
            }
        }
        if self.way != Way::Swap {
            words += match (self.direction, self.rung) {
                (Direction::In, Rung::Single) => "",
                (Direction::In, Rung::Merged) => " --prefetch next-7",
                (Direction::In, Rung::Asynchronous) => " --prefetch next-31",
                (Direction::Out, Rung::Single) => " --in-flight 1",
                (Direction::Out, Rung::Merged) => " --in-flight 8",
                (Direction::Out, Rung::Asynchronous) => " --in-flight 128",
            };
            if means.spins && self.rung == Rung::Single {
                words += &format!(" --spin-max {SPIN_MAX}");
            }
            if let Some([_, other]) = means.places {
                words += &format!(" --supervisor-cpu {other}");
            }
        }
        words.split(' ').map(str::to_owned).collect()
    }

    /// The arguments of the program, which times its touches.
    fn program(self, size: Size) -> Vec<String> {
        let mut words = match self.direction {
            Direction::In => format!("probe --pages {} --touches {}", size.pages, size.touches),
            Direction::Out => format!("probe --first --pages {}", size.fresh),
        };
        if self.rung == Rung::Single && self.direction == Direction::In {
            words += " --shuffled";
        }
        if self.rung == Rung::Asynchronous {
            words += &format!(" --threads {THREADS}");
        }
        words.split(' ').map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn words(name: &str, spins: bool) -> String {
        let places = spins.then_some([0, 1]);
        let size = Size::new(true, None);
        let means = Means { uri: "nvme+tcp://h/nqn.x", places, spins, size };
        let cell = Cell::all().into_iter().find(|cell| cell.name() == name);
        let Some(Cell::Far(step)) = cell else { panic!("there is no {name}") };
        let command = step.command(&means, Path::new("r"), Path::new("t"));
        let words = command.get_args().map(|word| word.to_string_lossy().into_owned());
        let own = launch::program().display().to_string();
        words.collect::<Vec<_>>().join(" ").replace(&own, "afar")
    }

    #[test]
    fn cells_have_names_of_their_own_and_swap_has_one_way_out() {
        let names: Vec<String> = Cell::all().into_iter().map(Cell::name).collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
        assert_eq!(names.len(), 2 + 6 + 6 + 4);
        let outs: Vec<&String> =
            names.iter().filter(|name| name.starts_with("swap") && name.ends_with("out")).collect();
        assert_eq!(outs, ["swap-asynchronous-out"]);
    }

    #[test]
    fn commands_differ_in_how_pages_are_asked_for() {
        let alone = "run --quiet --json r --local 8388608 --far nvme+tcp://h/nqn.x --spin-max 40us \
                     --supervisor-cpu 1 -- taskset -c 0 afar probe --pages 8192 --touches 24576 \
                     --shuffled --output t";
        assert_eq!(words("nvme-single-in", true), alone);
        let merged = "run --quiet --json r --local 8388608 --far nvme+tcp://h/nqn.x --prefetch \
                      next-7 -- afar probe --pages 8192 --touches 24576 --output t";
        assert_eq!(words("nvme-merged-in", false), merged);
        let out = "run --quiet --json r --local 8388608 --far memory:268435456 --in-flight 128 -- \
                   afar probe --first --pages 32768 --threads 4 --output t";
        assert_eq!(words("memory-asynchronous-out", false), out);
        let swap = "run --quiet --json r --local 8388608 --engine swap --page-cluster 0 -- taskset \
                    -c 0 afar probe --pages 8192 --touches 24576 --shuffled --output t";
        assert_eq!(words("swap-single-in", true), swap);
    }

    #[test]
    fn what_has_to_move_is_what_is_not_local() {
        let size = Size { pages: 40, touches: 100, fresh: 30, echoes: 1 };
        assert_eq!(size.wanted(Direction::In), 100 * PAGE);
        assert_eq!(size.wanted(Direction::Out), 20 * PAGE);
        let short = Size::new(true, Some(Duration::from_ms(40)));
        assert_eq!((short.touches, short.fresh, short.pages), (2000, 2048 + 2000, 8192));
    }
}
