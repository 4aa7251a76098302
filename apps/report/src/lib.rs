//! `afar report`: what records say, as a page that works offline, pictures, JSON or text; and
//! `afar watch`: the same for what is running, as a live page.
//!
//! ```text
//! record ─► source (its schema) ─► one module for each kind ─► Section: answer, pictures, tables
//!              watch: looks ──►        compare ◄── two ──┘        └─► page │ SVG │ PNG │ JSON
//! ```
//!
//! A section is computed from the record alone. Nothing here runs anything, and the page sends no
//! request to any host.
//!
//! The page is one file, under a content security policy that bars every request. Charts are drawn
//! by crate `chart` and about a hundred lines of script rather than by a library of a megabyte,
//! since what is asked of them (hints, logarithmic axes, heat maps, themes) is little. What is
//! drawn is thinned to what a column of pixels can show, extremes kept; the tables behind it are
//! not.

mod allowed;
mod compare;
mod contents;
mod context;
mod error;
mod flags;
mod hints;
mod json;
mod markdown;
mod network;
mod page;
mod raster;
mod section;
mod setting;
mod source;
mod watch;
mod words;

mod disk;
mod disks;
mod faults;
mod flows;
mod kv;
mod loops;
mod need;
mod plan;
mod predicted;
mod reproduced;
mod requirement;
mod run;
mod served;
mod sim;
mod sweep;
mod torture;
mod validated;
mod workload;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use flags::Format;
pub use flags::ReportFlags;
pub use source::OfSweep;
pub use watch::flags::WatchFlags;
pub use watch::{Sources, TargetLooks, watch};

use console::{Directory, Failure, Output, layout, terminal};
use raster::Font;

use contents::Report;

pub(crate) use error::ReportError;

/// Runs `afar report`; `of_sweep` reads the directories of sweeps.
///
/// # Errors
/// If a record cannot be read, or a file cannot be written.
pub fn report(flags: &ReportFlags, of_sweep: OfSweep<'_>) -> Result<ExitCode, Failure> {
    let bound = flags::bound(&flags.bound)?;
    let report = read(flags, bound, of_sweep)?;
    let font = flags.png.is_some().then(Font::find).transpose().map_err(ReportError::from)?;
    let open = |path: &Option<PathBuf>| path.as_deref().map(Output::open).transpose();
    let (html, json) = (open(&flags.output)?, open(&flags.json)?);
    if let Some(output) = html {
        output.write(&page::html(&report))?;
    }
    if let Some(output) = json {
        output.write(&json::text(&report))?;
    }
    if let Some(directory) = &flags.svg {
        pictures(&report, directory, "svg", |svg| Ok(svg.as_bytes().to_vec()))?;
    }
    if let Some((directory, font)) = flags.png.as_ref().zip(font) {
        pictures(&report, directory, "png", |svg| Ok(font.png(svg).map_err(ReportError::from)?))?;
    }
    let is_file =
        [&flags.output, &flags.json, &flags.svg, &flags.png].iter().any(|path| path.is_some());
    if !is_file || flags.format == Format::Md {
        terminal::answer(&match flags.format {
            Format::Text => text(&report),
            Format::Md => markdown::text(&report),
        })?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads the records into sections, with a comparison of them if `--compare` is set.
fn read(flags: &ReportFlags, bound: f64, of_sweep: OfSweep<'_>) -> Result<Report, ReportError> {
    if flags.compare && !(2..=compare::LETTERS.len()).contains(&flags.records.len()) {
        return Err(ReportError::Count(flags.records.len()));
    }
    let mut sections = Vec::new();
    for path in &flags.records {
        let section = source::read(path, bound, of_sweep)?.silenced();
        sections.push((path.display().to_string(), section));
    }
    if flags.compare {
        let kind = sections[0].1.kind;
        if let Some(at) = sections.iter().position(|(_, section)| section.kind != kind) {
            let paths = [flags.records[0].clone(), flags.records[at].clone()];
            return Err(ReportError::Kinds { paths, one: kind, other: sections[at].1.kind });
        }
        let records: Vec<_> =
            sections.iter().map(|(name, section)| (name.as_str(), section)).collect();
        let names: Vec<&str> = records.iter().map(|(name, _)| *name).collect();
        let compared = (names.join(" and "), compare::section(&records));
        sections.insert(0, compared);
    }
    sections.extend(predicted::against(&sections));
    for (_, section) in &mut sections {
        section::tell_apart(&mut section.pictures);
    }
    let title = match (&flags.title, sections.as_slice()) {
        (Some(title), _) => title.clone(),
        (None, [(_, only)]) => only.title.clone(),
        (None, [(_, first), ..]) if flags.compare => first.title.clone(),
        (None, _) => format!("Report on {} records", sections.len()),
    };
    let command = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    Ok(Report { title, command, sections })
}

/// Writes a file for each picture; with several records its name begins with the record's number.
fn pictures(
    report: &Report,
    directory: &Path,
    ending: &str,
    encode: impl Fn(&str) -> Result<Vec<u8>, Failure>,
) -> Result<(), Failure> {
    let _made = Directory::make(directory)?;
    for (index, (_, section)) in (1..).zip(&report.sections) {
        for picture in &section.pictures {
            let name = match report.sections.len() {
                1 => format!("{}.{ending}", picture.name),
                _ => format!("{index}-{}.{ending}", picture.name),
            };
            let bytes = encode(&picture.chart.draw().svg)?;
            Output::open(&directory.join(name))?.write_bytes(&bytes)?;
        }
    }
    Ok(())
}

/// The readable text: answers, notes and tables of all sections.
fn text(report: &Report) -> String {
    let mut out = String::new();
    for (name, section) in &report.sections {
        out += &format!("{} ({name})\n\n", section.title);
        for sentence in &section.answer {
            out += &format!("{sentence}\n");
        }
        for warning in &section.warnings {
            out += &format!("note: {warning}\n");
        }
        let enough = section.enough.as_ref();
        for table in enough.map(|enough| &enough.0).into_iter().chain(&section.verdicts) {
            let mut rows = vec![table.columns.clone()];
            rows.extend(table.rows.iter().cloned());
            out += &format!("\n{}", layout::table(&rows));
            if let Some((_, note)) =
                enough.filter(|enough| std::ptr::eq(&raw const enough.0, table))
            {
                out += &format!("{note}\n");
            }
        }
        out.push('\n');
    }
    out + "afar report RECORD -o report.html has pictures of this\n"
}
