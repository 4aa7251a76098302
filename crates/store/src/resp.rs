//! Decodes requests of RESP 2, each an array of bulk strings, and encodes answers.
//!
//! `load` has the client's side. The two share no code, since each tests the other.

/// Words of a request at most: an MGET of 65,536 keys.
pub(crate) const WORDS_MAX: usize = 65_537;
/// Bytes of a word at most.
pub(crate) const WORD_BYTES_MAX: usize = 16 << 20;
/// Bytes of all words of a request at most.
pub(crate) const REQUEST_BYTES_MAX: usize = 32 << 20;
/// Bytes of a line at most; a line holds a number of words or bytes.
const LINE_MAX: usize = 32;
/// Capacity of the input buffer that stays allocated while it is empty.
const KEPT_BYTES: usize = 64 << 10;

/// The peer violated the protocol or a limit; what follows cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Violation {
    #[error("expected '{wanted}' and a number, got '{found}'")]
    Head { wanted: char, found: String },
    #[error("a request has at most {WORDS_MAX} words, not {0}")]
    Words(usize),
    #[error("a word has at most {WORD_BYTES_MAX} bytes, not {0}")]
    Word(usize),
    #[error("a request has at most {REQUEST_BYTES_MAX} bytes")]
    Request,
    #[error("a word of {0} bytes does not end there")]
    End(usize),
}

/// Decodes requests from bytes that arrive in pieces.
#[derive(Debug, Default)]
pub(crate) struct Parser {
    input: Vec<u8>,
    /// Bytes of `input` that are decoded.
    at: usize,
    /// Words of the current request that are still to arrive.
    to_come: usize,
    /// Length of the current word, once known.
    length: Option<usize>,
    words: Vec<Vec<u8>>,
    bytes: usize,
}

impl Parser {
    /// Appends `bytes` that were read to the input.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        if self.at == self.input.len() {
            self.input.clear();
            self.input.shrink_to(KEPT_BYTES);
        } else {
            self.input.drain(..self.at);
        }
        self.at = 0;
        self.input.extend_from_slice(bytes);
    }

    /// The words of the next request; `None` until it has arrived completely.
    ///
    /// # Errors
    /// When the peer violates the protocol; the parser cannot be used after that.
    pub(crate) fn next(&mut self) -> Result<Option<Vec<Vec<u8>>>, Violation> {
        loop {
            if self.to_come == 0 {
                // An empty array is skipped.
                match self.number(b'*')? {
                    None => return Ok(None),
                    Some(count) if count > WORDS_MAX => return Err(Violation::Words(count)),
                    Some(count) => self.to_come = count,
                }
                continue;
            }
            if !self.word()? {
                return Ok(None);
            }
            if self.to_come == 0 {
                self.bytes = 0;
                return Ok(Some(std::mem::take(&mut self.words)));
            }
        }
    }

    // Decodes one word. Returns whether it has arrived completely.
    fn word(&mut self) -> Result<bool, Violation> {
        let length = match self.length {
            Some(length) => length,
            None => {
                let Some(length) = self.number(b'$')? else {
                    return Ok(false);
                };
                self.bytes = self.bytes.saturating_add(length);
                if length > WORD_BYTES_MAX {
                    return Err(Violation::Word(length));
                } else if self.bytes > REQUEST_BYTES_MAX {
                    return Err(Violation::Request);
                }
                self.length = Some(length);
                length
            }
        };
        let Some(word) = self.input.get(self.at..self.at + length + 2) else {
            return Ok(false);
        };
        let Some(word) = word.strip_suffix(b"\r\n") else {
            return Err(Violation::End(length));
        };
        self.words.push(word.to_vec());
        self.at += length + 2;
        self.to_come -= 1;
        self.length = None;
        Ok(true)
    }

    // Decodes a line of `kind` and a number; `None` until it has arrived completely.
    fn number(&mut self, kind: u8) -> Result<Option<usize>, Violation> {
        let rest = &self.input[self.at..];
        let window = &rest[..rest.len().min(LINE_MAX)];
        let wrong =
            |found: &[u8]| Violation::Head { wanted: char::from(kind), found: shown(found) };
        let is_kind = window.first().is_none_or(|first| *first == kind);
        let Some(end) = window.iter().position(|&byte| byte == b'\n') else {
            let may_come = is_kind && window.len() < LINE_MAX;
            return if may_come { Ok(None) } else { Err(wrong(window)) };
        };
        let line = &window[..end];
        let digits = line.strip_suffix(b"\r").and_then(|line| line.strip_prefix(&[kind]));
        let number = digits.and_then(decimal).ok_or_else(|| wrong(line))?;
        self.at += end + 1;
        Ok(Some(number))
    }
}

/// Parses a text of decimal digits only; `None` for any other text.
pub(crate) fn decimal<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    let is_number = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    if is_number { str::from_utf8(text).ok()?.parse().ok() } else { None }
}

/// The first 40 bytes of a peer's input, escaped for an error message.
pub(crate) fn shown(bytes: &[u8]) -> String {
    const LENGTH: usize = 40;
    bytes[..bytes.len().min(LENGTH)].escape_ascii().to_string()
}

/// Appends the simple string `text`.
pub(crate) fn simple(out: &mut Vec<u8>, text: &str) {
    line(out, b'+', text);
}

/// Appends an error; `text` is one line.
pub(crate) fn error(out: &mut Vec<u8>, text: &str) {
    line(out, b'-', &format!("ERR {}", text.replace(['\r', '\n'], " ")));
}

/// Appends an integer.
pub(crate) fn integer(out: &mut Vec<u8>, number: usize) {
    line(out, b':', &number.to_string());
}

/// Appends the header of an array of `count` values.
pub(crate) fn array(out: &mut Vec<u8>, count: usize) {
    line(out, b'*', &count.to_string());
}

/// Appends a bulk string, or nil for `None`.
pub(crate) fn bulk(out: &mut Vec<u8>, value: Option<&[u8]>) {
    let Some(value) = value else {
        return out.extend_from_slice(b"$-1\r\n");
    };
    line(out, b'$', &value.len().to_string());
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

// Appends a line of `kind` and `text`.
fn line(out: &mut Vec<u8>, kind: u8, text: &str) {
    out.push(kind);
    out.extend_from_slice(text.as_bytes());
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A request as it is sent.
    pub(super) fn sent(words: &[Vec<u8>]) -> Vec<u8> {
        let mut out = Vec::new();
        array(&mut out, words.len());
        words.iter().for_each(|word| bulk(&mut out, Some(word)));
        out
    }

    fn all(parser: &mut Parser) -> Result<Vec<Vec<Vec<u8>>>, Violation> {
        let mut requests = Vec::new();
        while let Some(request) = parser.next()? {
            requests.push(request);
        }
        Ok(requests)
    }

    fn parsed(input: &[u8]) -> Result<Vec<Vec<Vec<u8>>>, Violation> {
        let mut parser = Parser::default();
        parser.feed(input);
        all(&mut parser)
    }

    #[test]
    fn requests_are_arrays_of_words() {
        let input = b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n*0\r\n*1\r\n$0\r\n\r\n*1\r\n$3\r\nab";
        let wanted = vec![vec![b"GET".to_vec(), b"a".to_vec()], vec![b"".to_vec()]];
        assert_eq!(parsed(input), Ok(wanted));
    }

    #[test]
    fn what_is_no_request_is_told_at_once() {
        let told = |input: &[u8]| parsed(input).expect_err("refused").to_string();
        assert_eq!(told(b"GET a\r\n"), "expected '*' and a number, got 'GET a\\r'");
        assert_eq!(told(b"G"), "expected '*' and a number, got 'G'");
        assert_eq!(told(b"*1\r\n+GET\r\n"), "expected '$' and a number, got '+GET\\r'");
        assert_eq!(told(b"*-1\r\n"), "expected '*' and a number, got '*-1\\r'");
        assert_eq!(told(b"*1\r\n$-1\r\n"), "expected '$' and a number, got '$-1\\r'");
        assert_eq!(told(b"*1\n"), "expected '*' and a number, got '*1'");
        assert_eq!(told(b"*65538\r\n"), "a request has at most 65537 words, not 65538");
        assert_eq!(told(b"*1\r\n$16777217\r\n"), "a word has at most 16777216 bytes, not 16777217");
        assert_eq!(told(b"*1\r\n$2\r\nabcd"), "a word of 2 bytes does not end there");
        let digits = format!("*{}", "1".repeat(LINE_MAX - 1));
        assert!(told(digits.as_bytes()).starts_with("expected '*'"));
        assert_eq!(parsed(&digits.as_bytes()[..LINE_MAX - 1]), Ok(vec![]));
        assert!(told(b"*99999999999999999999999\r\n").starts_with("expected '*'"));
    }

    #[test]
    fn a_request_has_a_bound_of_its_own() {
        let mut parser = Parser::default();
        parser.feed(b"*4\r\n");
        let mut word = format!("${WORD_BYTES_MAX}\r\n").into_bytes();
        word.resize(word.len() + WORD_BYTES_MAX, b'x');
        word.extend_from_slice(b"\r\n");
        for _ in 0..2 {
            parser.feed(&word);
            assert_eq!(parser.next(), Ok(None));
        }
        parser.feed(b"$1\r\n");
        assert_eq!(parser.next(), Err(Violation::Request));
    }

    #[test]
    fn what_was_counted_of_one_request_is_none_of_the_next() {
        let large = vec![vec![b'x'; WORD_BYTES_MAX]];
        let mut parser = Parser::default();
        for _ in 0..3 {
            parser.feed(&sent(&large));
            assert_eq!(parser.next().map(|request| request.map(|words| words.len())), Ok(Some(1)));
        }
        parser.feed(b"");
        assert!(parser.input.capacity() <= KEPT_BYTES);
    }

    #[test]
    fn answers_are_one_line_each() {
        let mut out = Vec::new();
        error(&mut out, "two\r\nlines");
        simple(&mut out, "OK");
        integer(&mut out, 7);
        bulk(&mut out, None);
        bulk(&mut out, Some(b"\r\n"));
        assert_eq!(out, b"-ERR two  lines\r\n+OK\r\n:7\r\n$-1\r\n$2\r\n\r\n\r\n");
        assert_eq!(shown(b"a\r\n\xff"), "a\\r\\n\\xff");
        assert_eq!(shown(&[b'a'; 90]).len(), 40);
    }

    fn requests() -> impl Strategy<Value = Vec<Vec<Vec<u8>>>> {
        let word = prop::collection::vec(any::<u8>(), 0..40);
        prop::collection::vec(prop::collection::vec(word, 1..5), 0..6)
    }

    proptest! {
        #[test]
        fn requests_arrive_in_any_pieces(
            requests in requests(),
            cuts in prop::collection::vec(1..50_usize, 1..40),
        ) {
            let input: Vec<u8> = requests.iter().flat_map(|words| sent(words)).collect();
            let mut parser = Parser::default();
            let (mut found, mut rest) = (Vec::new(), &input[..]);
            for cut in cuts.into_iter().cycle() {
                let (piece, more) = rest.split_at(cut.min(rest.len()));
                parser.feed(piece);
                found.extend(all(&mut parser).unwrap());
                rest = more;
                if rest.is_empty() {
                    break;
                }
            }
            prop_assert_eq!(found, requests);
        }

        #[test]
        fn no_bytes_are_too_much(input: Vec<u8>, cut in 0..64_usize) {
            let mut parser = Parser::default();
            let (first, second) = input.split_at(cut.min(input.len()));
            for piece in [first, second] {
                parser.feed(piece);
                if all(&mut parser).is_err() {
                    break;
                }
            }
        }

        #[test]
        fn no_changed_byte_is_too_much(requests in requests(), at: prop::sample::Index, byte: u8) {
            let mut input: Vec<u8> = requests.iter().flat_map(|words| sent(words)).collect();
            if !input.is_empty() {
                let at = at.index(input.len());
                input[at] = byte;
            }
            let _verdict = parsed(&input);
        }
    }
}
