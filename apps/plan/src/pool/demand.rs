//! Who wants how much memory when: loads by server and period, from a file or from what programs
//! say of a day.

use std::collections::BTreeMap;
use std::path::Path;

use planner::pool::Load;
use toml::Spanned;

use crate::amounts::parse_amount;
use document::DocumentError;
use document::Source;
use document::csv::rows;

/// Bounds, so that a typo does not take all memory: servers, ten years of hours, and both.
pub(super) const SERVERS_MAX: u32 = 1_000_000;
const PERIODS_MAX: usize = 87_600;
const LOADS_MAX: usize = 40_000_000;
const HOURS: usize = 24;
const COLUMNS: [&str; 4] = ["server", "period", "program", "memory"];

/// The memory that a program wants over a day on servers of its own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Day {
    pub(super) servers: u32,
    /// At the peak, bytes.
    pub(super) memory: u64,
    /// The share of it in the quietest hour.
    pub(super) low: f64,
    /// The hour of the peak.
    pub(super) peak: u32,
}

/// Loads by server and period.
#[derive(Debug, Default)]
pub(super) struct Servers {
    pub(super) names: Vec<String>,
    pub(super) loads: Vec<Vec<Load>>,
}

impl Day {
    /// The bytes in a period: a wave from the quietest hour to the peak and back.
    fn at(&self, period: usize) -> u64 {
        let hours = (period % HOURS) as f64 - f64::from(self.peak);
        let height = f64::midpoint(1.0, (hours / HOURS as f64 * std::f64::consts::TAU).cos());
        let share = self.low + (1.0 - self.low) * height;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "of a u64")]
        let bytes = (self.memory as f64 * share).round() as u64;
        bytes.min(self.memory)
    }
}

/// Reads the file of demand, if there is one, and adds programs with servers of their own.
///
/// # Errors
/// The first invalid row or value, with its place.
pub(super) fn read(
    base: &Source,
    file: Option<&Spanned<String>>,
    programs: &[Program],
) -> Result<Servers, DocumentError> {
    let mut servers = match file {
        Some(name) => {
            let path = Path::new(&base.name).with_file_name(name.get_ref());
            parse(&Source::read(&path)?, programs)?
        }
        None => Servers::default(),
    };
    let days = || programs.iter().filter_map(|one| Some((one, one.alone.as_ref()?)));
    let waves = days().any(|(_, day)| day.low < 1.0);
    let periods = servers.loads.first().map_or(if waves { HOURS } else { 1 }, Vec::len);
    let count: usize = days().map(|(_, day)| day.servers as usize).sum();
    let too_many =
        || base.wrong(&(0..0), format!("more than {LOADS_MAX} loads; give fewer servers"));
    if (servers.loads.len() + count).saturating_mul(periods) > LOADS_MAX {
        return Err(too_many());
    }
    for (program, day) in days() {
        let load = |period| Load::default().plus(day.at(period), program.least_ppm);
        let load = |period| load(period).unwrap_or_default();
        let loads: Vec<Load> = (0..periods).map(load).collect();
        for number in 0..day.servers {
            servers.names.push(format!("{}-{number}", program.name));
            servers.loads.push(loads.clone());
        }
    }
    Ok(servers)
}

/// Parses the file of demand.
fn parse(source: &Source, programs: &[Program]) -> Result<Servers, DocumentError> {
    let mut rows = rows(&source.text);
    let header = rows.next().unwrap_or_default();
    let header: Vec<&str> = header.cells().map(|(_, name)| name).collect();
    if header != COLUMNS {
        let message = format!("begin it with {}", COLUMNS.join(","));
        return Err(source.wrong(&(0..0), message));
    }
    // "*" stands for all programs that are not named.
    let least = |name: &str| {
        let named = programs.iter().find(|one| one.name == name);
        named.or_else(|| programs.iter().find(|one| one.name == "*")).map(|one| one.least_ppm)
    };
    let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
    let mut wanted: Vec<BTreeMap<usize, Load>> = Vec::new();
    let mut periods = 0;
    for row in rows {
        let found: Vec<(usize, &str)> = row.cells().collect();
        let [(_, server), (period_at, period), (program_at, program), (memory_at, memory)] =
            found[..]
        else {
            return Err(source.wrong(&(row.at..row.at), "a row has 4 cells, as the first line has"));
        };
        let period: usize =
            period.parse().ok().filter(|one| *one < PERIODS_MAX).ok_or_else(|| {
                let message =
                    format!("\"{period}\": a period is a number from 0 to {}", PERIODS_MAX - 1);
                source.wrong(&(period_at..period_at), message)
            })?;
        let least_ppm = least(program).ok_or_else(|| {
            let message = format!("there is no [[program]] \"{program}\"; add it, or one named *");
            source.wrong(&(program_at..program_at), message)
        })?;
        let bytes = parse_amount(planner::cost::Dimension::Memory, memory);
        let bytes = bytes.map_err(|message| source.wrong(&(memory_at..memory_at), message))?;
        periods = periods.max(period + 1);
        let next = numbers.len();
        let number = *numbers.entry(server.to_owned()).or_insert(next);
        if number == next {
            wanted.push(BTreeMap::new());
        }
        let load = wanted[number].entry(period).or_default();
        *load = load.plus(bytes, least_ppm).ok_or_else(|| {
            let message = format!("the memory of {server} goes beyond {} bytes", u64::MAX);
            source.wrong(&(memory_at..memory_at), message)
        })?;
        if numbers.len().saturating_mul(periods) > LOADS_MAX {
            let message = format!("servers times periods are more than {LOADS_MAX}; give fewer");
            return Err(source.wrong(&(row.at..row.at), message));
        }
    }
    let mut names = vec![String::new(); numbers.len()];
    for (name, number) in numbers {
        name.clone_into(&mut names[number]);
    }
    let of = |wanted: BTreeMap<usize, Load>| {
        (0..periods).map(|period| wanted.get(&period).copied().unwrap_or_default()).collect()
    };
    Ok(Servers { names, loads: wanted.into_iter().map(of).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Servers, String> {
        let source = Source { name: "d.csv".to_owned(), text: text.to_owned() };
        let program = |name: &str, least_ppm| Program {
            name: name.to_owned(),
            bound: 0.1,
            least_ppm,
            alone: None,
        };
        let programs = [program("a", 500_000), program("*", 1_000_000)];
        parse(&source, &programs).map_err(|error| error.to_string())
    }

    #[test]
    fn programs_of_a_server_add_up() {
        let text = "server,period,program,memory\ns,0,a,100\ns,0,b,50\ns,2,a,10\nr,1,a,1KiB\n";
        let servers = of(text).expect("it is one");
        assert_eq!(servers.names, ["s", "r"]);
        assert_eq!(servers.loads[0][0], Load { all: 150, least: 100 });
        assert_eq!(servers.loads[0][1], Load::default());
        assert_eq!(servers.loads[1][1], Load { all: 1024, least: 512 });
    }

    #[test]
    fn what_cannot_be_is_named_with_its_place() {
        let refused = |row: &str| {
            of(&format!("server,period,program,memory\n{row}\n")).expect_err("it cannot be")
        };
        assert!(refused("s,-1,a,1").starts_with("d.csv:2:3: \"-1\": a period is a number"));
        assert!(refused("s,99999999999,a,1").contains("from 0 to 87599"));
        assert!(refused("s,0,a,NaN").starts_with("d.csv:2:7: \"NaN\""));
        assert!(
            refused("s,0,a,1\ns,0,a,18446744073709551615").starts_with("d.csv:3:7: the memory")
        );
        assert!(refused("s,0,a").contains("a row has 4 cells"));
        assert!(of("server,period\n").expect_err("no").starts_with("d.csv:1:1: begin it with"));
    }

    #[test]
    fn days_are_waves() {
        let day = Day { servers: 1, memory: 1_000, low: 0.2, peak: 14 };
        assert_eq!((day.at(14), day.at(2), day.at(8), day.at(38)), (1_000, 200, 600, 1_000));
    }
}

/// A program, and the least of its memory that must be local.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) name: String,
    pub(super) bound: f64,
    pub(super) least_ppm: u64,
    /// Servers that have it to themselves.
    pub(super) alone: Option<Day>,
}
