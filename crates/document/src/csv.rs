//! Rows and cells of CSV with their places; no cell is quoted.

/// Lines that say something, with where they begin.
pub fn rows(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.split('\n').scan(0, |at, line| {
        let start = *at;
        *at += line.len() + 1;
        Some((start, line))
    });
    lines.filter(|(_, line)| !line.trim().is_empty())
}

/// Cells of a row without white space around them, with where they begin.
pub fn cells((start, line): (usize, &str)) -> impl Iterator<Item = (usize, &str)> {
    line.split(',').scan(start, |at, cell| {
        let here = *at + (cell.len() - cell.trim_start().len());
        *at += cell.len() + 1;
        Some((here, cell.trim()))
    })
}
