//! The pages of an order as text: `PROCESS:PAGE+COUNT`.

use paging::order::{PAGES_MAX, Place};

/// Bits of a page number: addresses have 48, of which 12 are within a page.
const PAGE_BITS: u32 = 36;

/// Why a text is no list of pages.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RunsError {
    #[error("\"{0}\" is not PROCESS:PAGE+COUNT, such as 0:7ffff7a00+16")]
    Text(String),
    #[error("\"{0}\" goes beyond the last page, {last:x}", last = (1_u64 << PAGE_BITS) - 1)]
    Beyond(String),
    #[error("\"{0}\" has a page that was there before")]
    Twice(String),
    #[error("there are more than {PAGES_MAX} pages")]
    TooMany,
    #[error("there are {found} pages, and it says that there are {told}")]
    Count { found: u64, told: u64 },
}

/// The pages as text, with consecutive ones as a run.
pub(crate) fn write(list: &[Place]) -> Vec<String> {
    let follows = |one: &Place, next: &Place| {
        one.process == next.process && next.page.checked_sub(one.page) == Some(1)
    };
    let run = |run: &[Place]| format!("{}:{:x}+{}", run[0].process, run[0].page, run.len());
    list.chunk_by(follows).map(run).collect()
}

/// Parses runs of pages, which must be `told` in all.
///
/// # Errors
/// When one is not a run of pages, there are too many, or one is named twice.
pub(crate) fn read(runs: &[String], told: u64) -> Result<Vec<Place>, RunsError> {
    let mut list = Vec::new();
    let mut known = std::collections::HashSet::new();
    for text in runs {
        let Some((process, first, count)) = parse(text) else {
            return Err(RunsError::Text(text.clone()));
        };
        if first.checked_add(count).is_none_or(|end| end > 1 << PAGE_BITS) {
            return Err(RunsError::Beyond(text.clone()));
        }
        if count > (PAGES_MAX - list.len()) as u64 {
            return Err(RunsError::TooMany);
        }
        for page in first..first + count {
            let place = Place { process, page };
            if !known.insert(place) {
                return Err(RunsError::Twice(text.clone()));
            }
            list.push(place);
        }
    }
    match list.len() as u64 {
        found if found != told => Err(RunsError::Count { found, told }),
        _ => Ok(list),
    }
}

// Parses one run: process, first page, number of pages; `None` if it is malformed.
fn parse(text: &str) -> Option<(u32, u64, u64)> {
    let (process, pages) = text.split_once(':')?;
    let (first, count) = pages.split_once('+')?;
    let first = u64::from_str_radix(first, 16).ok()?;
    let count = count.parse().ok().filter(|&count: &u64| count > 0)?;
    Some((process.parse().ok()?, first, count))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(words: &str) -> Vec<String> {
        words.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn pages_in_a_row_are_one_text_and_come_back() {
        let place = |process, page| Place { process, page };
        let list = [
            place(0, 0x10),
            place(0, 0x11),
            place(0, 0x12),
            place(1, 0x13),
            place(0, 0x14),
            place(0, 0x13),
            place(2, (1 << 36) - 1),
        ];
        let runs = write(&list);
        assert_eq!(runs, texts("0:10+3 1:13+1 0:14+1 0:13+1 2:fffffffff+1"));
        assert_eq!(read(&runs, 7), Ok(list.to_vec()));
        assert_eq!((write(&[]), read(&[], 0)), (Vec::new(), Ok(Vec::new())));
    }

    #[test]
    fn what_names_no_pages_is_refused() {
        let error = |words: &str| read(&texts(words), 1).unwrap_err();
        for text in ["", "7", "0:7", "0:7+0", "0:7+x", "0:g+1", "-1:7+1", "0:7+1+1"] {
            assert_eq!(read(&[text.to_owned()], 1), Err(RunsError::Text(text.to_owned())));
        }
        assert_eq!(error("0:7+2 0:8+1"), RunsError::Twice("0:8+1".to_owned()));
        assert_eq!(error("0:fffffffff+2"), RunsError::Beyond("0:fffffffff+2".to_owned()));
        assert_eq!(error("0:0+4194305"), RunsError::TooMany);
        assert_eq!(error("0:7+2"), RunsError::Count { found: 2, told: 1 });
    }
}
