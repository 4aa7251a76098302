//! The live page, and the events that fill it.
//!
//! The page itself has no data. An event has all of it, as markup of the report; the page takes
//! over the parts that have changed. Whatever a record says is escaped, and the page's policy lets
//! only the scripts run that carry its nonce: markup in a name runs nothing.

use chart::escape;
use serde::Serialize;

use super::shown::Shown;
use crate::page::{self, SCRIPT, STYLE};

const LIVE_STYLE: &str = include_str!("watch.css");
const LIVE_SCRIPT: &str = include_str!("watch.js");

/// What the page shows.
#[derive(Debug, Default, Serialize)]
pub(super) struct Event {
    state: String,
    is_there: bool,
    /// Markup of its sections.
    parts: Vec<String>,
}

impl Event {
    /// Takes over what was seen. Returns whether the page changes.
    pub(super) fn update(&mut self, shown: Shown) -> bool {
        let parts: Option<Vec<String>> =
            shown.sections.map(|sections| page::sections(&sections).collect());
        let is_new = self.state != shown.state
            || self.is_there != shown.is_there
            || parts.as_ref().is_some_and(|parts| *parts != self.parts);
        (self.state, self.is_there) = (shown.state, shown.is_there);
        self.parts = parts.unwrap_or_else(|| std::mem::take(&mut self.parts));
        is_new
    }

    /// The event as a stream has it (SSE): one line of JSON.
    pub(super) fn text(&self) -> String {
        let data = serde_json::to_string(self).expect("texts have a JSON form");
        format!("data: {data}\n\n")
    }
}

/// The content security policy: the page may run its own scripts, and send requests to its server.
pub(super) fn policy(nonce: &str) -> String {
    format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src \
         'self'; img-src data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
}

/// The page before its first event.
pub(super) fn html(name: &str, nonce: &str) -> String {
    let (name, glossary) = (escape(name), page::glossary().replace("<details open>", "<details>"));
    let version = env!("CARGO_PKG_VERSION");
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{name} – afar watch</title>\n<link rel=\"icon\" href=\"data:,\">\n\
         <style nonce=\"{nonce}\">\n{STYLE}{LIVE_STYLE}</style>\n</head>\n<body>\n\
         <header><div><h1>{name}</h1><p class=\"soft\">afar watch {version}</p></div>\
         <button id=\"theme\" hidden>light or dark</button></header>\n\
         <p id=\"state\" role=\"status\" data-is=\"waiting\"><span id=\"lamp\"></span>\
         <span id=\"said\">Waiting for the first look. Without scripts this page stays empty.\
         </span> <span id=\"age\" class=\"soft\"></span></p>\n\
         <main></main>\n{glossary}<div id=\"tip\" role=\"status\" hidden></div>\n\
         <script nonce=\"{nonce}\">\n{SCRIPT}</script>\n\
         <script nonce=\"{nonce}\">\n{LIVE_SCRIPT}</script>\n</body>\n</html>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::section::Section;

    fn shown(state: &str, title: Option<&str>) -> Shown {
        let section = |title: &str| Section { title: title.to_owned(), ..Section::default() };
        let sections = title.map(|title| vec![(String::new(), section(title))]);
        Shown { state: state.to_owned(), is_there: title.is_some(), sections }
    }

    #[test]
    fn an_event_is_sent_when_something_is_new() {
        let mut event = Event::default();
        assert!(event.update(shown("a", Some("one"))));
        assert!(!event.update(shown("a", Some("one"))), "the same again");
        assert!(event.update(shown("a", Some("two"))));
        assert!(event.update(shown("gone", None)));
        assert!(event.parts[0].contains("two"), "what was shown stays");
        assert!(
            event.text().starts_with("data: {\"state\":\"gone\",\"is_there\":false,\"parts\":")
        );
        assert_eq!(event.text().lines().count(), 2, "a line and an empty one");
    }

    #[test]
    fn what_others_say_is_text() {
        let mut event = Event::default();
        event.update(shown("<b>", Some("</h2><script>x()</script>")));
        assert!(event.parts[0].contains("&lt;script&gt;") && !event.parts[0].contains("<script>"));
        let html = html("<img src=x>", "00ff");
        assert!(html.contains("<h1>&lt;img src=x&gt;</h1>"), "{html:.400}");
        assert_eq!(html.matches("nonce=\"00ff\"").count(), 3);
        assert!(!policy("00ff").contains("unsafe") && !policy("00ff").contains("http"));
    }
}
