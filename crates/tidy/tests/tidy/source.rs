//! Rust text → what is code, what is comment, what only tests see.
//!
//! A lexer for exactly the four things that make searching source text go wrong: comments,
//! strings, character literals and lifetimes. Blanked text keeps its length and its line breaks,
//! so an offset means the same place in every view.

/// One Rust file in four views of equal length.
#[derive(Debug)]
pub(crate) struct Source {
    /// As written.
    pub(crate) text: String,
    /// Comments and the insides of literals are blanks.
    pub(crate) code: String,
    /// `code` with the items under `#[cfg(test)]` blanked too.
    pub(crate) live: String,
    /// Comments only.
    pub(crate) comments: String,
    /// Lines that belong to items under `#[cfg(test)]`.
    pub(crate) test_lines: usize,
}

impl Source {
    pub(crate) fn new(text: &str) -> Self {
        let (code, comments) = separate(text);
        let mut live = code.clone();
        let mut test_lines = 0;
        for (start, end) in test_items(&code) {
            live = blanked(&live, start, end);
            test_lines += newlines(&text[start..end]) + 1;
        }
        Self { text: text.to_owned(), code, live, comments, test_lines }
    }

    /// The line of a byte offset; the first line is 1.
    pub(crate) fn line(&self, offset: usize) -> usize {
        1 + newlines(&self.text[..offset])
    }
}

/// Line breaks in `text`.
pub(crate) fn newlines(text: &str) -> usize {
    text.bytes().filter(|&byte| byte == b'\n').count()
}

/// Offsets at which `needle` stands on its own: an identifier's end never touches another
/// identifier, so `print!` is not found in `eprint!`.
pub(crate) fn occurrences(code: &str, needle: &str) -> Vec<usize> {
    let bytes = code.as_bytes();
    let is_word = |byte: Option<&u8>| byte.is_some_and(|&byte| is_word_byte(byte));
    let (first, last) = (needle.as_bytes().first(), needle.as_bytes().last());
    code.match_indices(needle)
        .map(|(start, _)| start)
        .filter(|&start| {
            let before = start.checked_sub(1).and_then(|at| bytes.get(at));
            let after = bytes.get(start + needle.len());
            !(is_word(first) && is_word(before) || is_word(last) && is_word(after))
        })
        .collect()
}

/// The offset just past the bracket that closes the one at `open`.
pub(crate) fn closing(code: &str, open: usize) -> usize {
    let mut depth = 0_usize;
    for (offset, byte) in code.bytes().enumerate().skip(open) {
        match byte {
            b'{' | b'(' | b'[' => depth += 1,
            b'}' | b')' | b']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return offset + 1;
                }
            }
            _ => {}
        }
    }
    code.len()
}

/// Where the item that starts at `from` has its body: the offsets of its braces, or `None` for
/// an item that ends with a semicolon.
pub(crate) fn body(code: &str, from: usize) -> Option<(usize, usize)> {
    let mut at = from;
    while let Some(byte) = code.as_bytes().get(at) {
        match byte {
            b'{' => return Some((at, closing(code, at))),
            b'(' | b'[' => at = closing(code, at),
            b';' | b'}' => return None,
            _ => at += 1,
        }
    }
    None
}

/// `text` with the bytes from `start` to `end` turned into spaces, line breaks kept.
fn blanked(text: &str, start: usize, end: usize) -> String {
    let blank = |c: char| {
        if c == '\n' { "\n".to_owned() } else { " ".repeat(c.len_utf8()) }
    };
    let middle: String = text[start..end].chars().map(blank).collect();
    [&text[..start], &middle, &text[end..]].concat()
}

/// Splits a text into (code, comments).
fn separate(text: &str) -> (String, String) {
    let (mut code, mut comments) = (String::new(), String::new());
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let follows_word = text[..at].bytes().next_back().is_some_and(is_word_byte);
        let (code_length, comment_length, literal_length) = if let Some(length) = comment(rest) {
            (0, length, 0)
        } else if let Some(length) = literal(rest, follows_word) {
            (0, 0, length)
        } else {
            (rest.chars().next().map_or(1, char::len_utf8), 0, 0)
        };
        let length = code_length + comment_length + literal_length;
        let part = &rest[..length];
        let blank = blanked(part, 0, length);
        code.push_str(if code_length > 0 { part } else { &blank });
        comments.push_str(if comment_length > 0 { part } else { &blank });
        at += length;
    }
    (code, comments)
}

/// The length of the comment that `rest` starts with.
fn comment(rest: &str) -> Option<usize> {
    if rest.starts_with("//") {
        return Some(rest.find('\n').unwrap_or(rest.len()));
    }
    if !rest.starts_with("/*") {
        return None;
    }
    let (mut depth, mut at) = (0_usize, 0);
    while at < rest.len() {
        match rest.as_bytes()[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return Some(at);
        }
    }
    Some(rest.len())
}

/// The length of the string or character literal that `rest` starts with, prefix included.
fn literal(rest: &str, follows_word: bool) -> Option<usize> {
    let prefix = ["br", "cr", "r", "b", "c"]
        .into_iter()
        .find(|prefix| {
            let quoted = rest.strip_prefix(prefix).map(|rest| rest.trim_start_matches('#'));
            !follows_word && quoted.is_some_and(|rest| rest.starts_with(['"', '\'']))
        })
        .unwrap_or("");
    let quoted = &rest[prefix.len()..];
    if prefix.ends_with('r') {
        let hashes = quoted.len() - quoted.trim_start_matches('#').len();
        let open = prefix.len() + hashes + 1;
        let close = format!("\"{}", "#".repeat(hashes));
        let end = rest[open..].find(&close).map_or(rest.len(), |end| open + end + close.len());
        return Some(end);
    }
    let quote = quoted.chars().next().filter(|quote| ['"', '\''].contains(quote))?;
    if quote == '\'' && is_lifetime(quoted) {
        return None;
    }
    let mut escaped = false;
    for (offset, character) in quoted.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if character == quote => return Some(prefix.len() + offset + 1),
            _ => {}
        }
    }
    Some(rest.len())
}

/// Whether a quote starts a lifetime: neither an escape nor one character and a quote follow.
fn is_lifetime(quoted: &str) -> bool {
    let mut characters = quoted.chars().skip(1);
    characters.next() != Some('\\') && characters.next() != Some('\'')
}

/// The items compiled for tests only, attribute included, as (start, end); none inside another.
fn test_items(code: &str) -> Vec<(usize, usize)> {
    let mut items: Vec<(usize, usize)> = Vec::new();
    let is_test = |rest: &str| {
        rest.starts_with("#[cfg(test)]")
            || rest.starts_with("#[cfg(all(test,")
            || rest.starts_with("#![cfg(test)]")
    };
    for (start, _) in code.match_indices('#') {
        let is_inside = items.last().is_some_and(|&(_, end)| start < end);
        if is_inside || !is_test(&code[start..]) {
            continue;
        }
        let attribute = closing(code, start + 1);
        let semicolon = || code[attribute..].find([';', '}']).map(|at| attribute + at + 1);
        let end = match body(code, attribute) {
            // An inner attribute speaks of everything that follows.
            _ if code[start..].starts_with("#!") => code.len(),
            _ if is_field(&code[attribute..]) => attribute + field_end(&code[attribute..]),
            Some((_, end)) => end,
            None => semicolon().unwrap_or(code.len()),
        };
        items.push((start, end));
    }
    items
}

/// Whether code begins with a field of a struct, and not with an item.
fn is_field(code: &str) -> bool {
    let code = code.trim_start();
    let code = match code.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(')').map_or(rest, |(_, rest)| rest),
        Some(rest) if rest.starts_with(char::is_whitespace) => rest,
        _ => code,
    };
    let code = code.trim_start();
    let name = code.bytes().take_while(|&byte| is_word_byte(byte)).count();
    let after = code[name..].trim_start();
    name > 0 && after.starts_with(':') && !after.starts_with("::")
}

/// Where the field ends that code begins with: behind its comma, or before the end of its struct.
fn field_end(code: &str) -> usize {
    let mut depth = 0_usize;
    for (at, byte) in code.bytes().enumerate() {
        match byte {
            b'(' | b'[' | b'<' | b'{' => depth += 1,
            b'}' if depth == 0 => return at,
            b'>' if code[..at].ends_with('-') => {}
            b')' | b']' | b'>' | b'}' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => return at + 1,
            _ => {}
        }
    }
    code.len()
}

fn is_word_byte(byte: u8) -> bool {
    byte == b'_' || byte.is_ascii_alphanumeric() || !byte.is_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_has_no_comments_and_no_literals() {
        let cases = [
            ("a // b\nc", "a c"),
            ("a /* b /* c */ d */ e", "a e"),
            (r#"f("{ \" }", x)"#, "f( , x)"),
            ("r#\"a \" b\"# c", "c"),
            ("br\"\\\" c", "c"),
            (r"['{', '\'', '\\', '}']", "[ , , , ]"),
            ("fn f<'a>(x: &'a str)", "fn f<'a>(x: &'a str)"),
            ("b'\"' c", "c"),
            ("\"é\" c", "c"),
            ("r#type", "r#type"),
            ("for \"x\" in", "for in"),
        ];
        for (text, expected) in cases {
            let code = Source::new(text).code;
            assert_eq!(code.split_whitespace().collect::<Vec<_>>().join(" "), expected, "{text}");
            assert_eq!(code.len(), text.len(), "{text}");
        }
    }

    #[test]
    fn comments_are_kept_apart() {
        let source = Source::new("a // b \"c\"\n\"// d\"");
        assert_eq!(source.comments.trim(), "// b \"c\"");
    }

    #[test]
    fn live_loses_test_items_only() {
        let text =
            "fn a() {}\n#[cfg(test)]\nmod tests { fn b() {} }\n#[cfg(test)]\nuse c;\nfn d();";
        let live = Source::new(text).live;
        assert_eq!(live.split_whitespace().collect::<Vec<_>>(), ["fn", "a()", "{}", "fn", "d();"]);
        assert_eq!(live.len(), text.len());
    }

    #[test]
    fn live_loses_a_field_and_not_what_follows_its_struct() {
        let text = "struct S {\n a: u8,\n#[cfg(test)]\npub(crate) b: Vec<(u8, fn() -> u8)>,\n}\n\
                    impl S {}\nstruct T { #[cfg(test)] c: u8 }\nenum E {}";
        let live = Source::new(text).live;
        let words: Vec<&str> = live.split_whitespace().collect();
        let expected = "struct S { a: u8, } impl S {} struct T { } enum E {}";
        assert_eq!(words.join(" "), expected);
    }

    #[test]
    fn occurrences_respects_identifiers() {
        assert_eq!(occurrences("eprint!(); print!()", "print!"), [11]);
        assert_eq!(occurrences("Map HashMap MapX", "Map"), [0]);
        assert_eq!(occurrences("a.unwrap()", ".unwrap()"), [1]);
    }

    #[test]
    fn body_skips_brackets_of_the_signature() {
        let code = "fn f(a: [u8; 4]) -> [u8; { 2 }] { x }";
        assert_eq!(body(code, 0), Some((32, code.len())));
        assert_eq!(body("fn f(a: [u8; 4]);", 0), None);
    }

    #[test]
    fn line_counts_from_one() {
        let source = Source::new("a\nb\n");
        assert_eq!((source.line(0), source.line(2)), (1, 2));
    }
}
