//! Whether a page is well-formed, self-contained and told apart: what a browser would forgive is
//! found here.

use std::collections::BTreeSet;

/// Elements without content or end.
const VOID: [&str; 5] = ["meta", "link", "br", "img", "hr"];
/// Elements whose content is no markup.
const RAW: [&str; 2] = ["script", "style"];
/// What makes a browser fetch something.
const FETCHING: [&str; 9] =
    ["src", "srcset", "href", "action", "data", "poster", "background", "formaction", "xlink:href"];

/// Checks a whole page.
pub(crate) fn check(html: &str) -> Result<(), String> {
    if !html.starts_with("<!doctype html>\n<html lang=\"en\">") {
        return Err("it does not begin as a page does".to_owned());
    }
    let mut open: Vec<&str> = Vec::new();
    let mut ids = BTreeSet::new();
    let mut rest = &html["<!doctype html>".len()..];
    while let Some(at) = rest.find('<') {
        if let Some(stray) = rest[..at].find('>') {
            return Err(format!("a stray >: {:?}", around(rest, stray)));
        }
        check_entities(&rest[..at])?;
        let end = tag_end(&rest[at..]).ok_or_else(|| format!("cut: {:?}", around(rest, at)))?;
        let tag = &rest[at + 1..at + end];
        rest = &rest[at + end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            let opened = open.pop();
            if opened != Some(name) {
                return Err(format!("</{name}> where {opened:?} is open"));
            }
            continue;
        }
        let name = tag.split([' ', '\n', '/']).next().unwrap_or_default();
        check_attributes(tag, &mut ids)?;
        if RAW.contains(&name) {
            let close = format!("</{name}>");
            let end = rest.find(&close).ok_or_else(|| format!("{name} does not end"))?;
            check_raw(name, &rest[..end])?;
            rest = &rest[end + close.len()..];
        } else if !VOID.contains(&name) && !tag.ends_with('/') {
            open.push(name);
        }
    }
    check_policy(html)?;
    if open.is_empty() { Ok(()) } else { Err(format!("left open: {open:?}")) }
}

// Attribute values may hold anything but their quote.
fn tag_end(text: &str) -> Option<usize> {
    let mut is_quoted = false;
    text.bytes().position(|byte| {
        is_quoted ^= byte == b'"';
        byte == b'>' && !is_quoted
    })
}

fn around(text: &str, at: usize) -> String {
    let before: String = text[..at].chars().rev().take(40).collect();
    let before: String = before.chars().rev().collect();
    before + &text[at..].chars().take(40).collect::<String>()
}

fn check_entities(text: &str) -> Result<(), String> {
    for (at, _) in text.match_indices('&') {
        let known = ["&amp;", "&lt;", "&gt;", "&quot;", "&#39;"];
        if !known.iter().any(|entity| text[at..].starts_with(entity)) {
            return Err(format!("a bare &: {:?}", around(text, at)));
        }
    }
    Ok(())
}

fn check_attributes(tag: &str, ids: &mut BTreeSet<String>) -> Result<(), String> {
    let mut rest = tag;
    while let Some((key, after)) = rest.split_once("=\"") {
        let key = key.rsplit([' ', '\n']).next().unwrap_or_default().to_owned();
        let Some((value, after)) = after.split_once('"') else {
            return Err(format!(
                "an attribute does not end: {key} in <{}",
                &tag[..tag.len().min(60)]
            ));
        };
        check_entities(value)?;
        if value.contains('<') {
            return Err(format!("a < in {key}"));
        }
        if key.starts_with("on") {
            return Err(format!("{key} runs something"));
        }
        if FETCHING.contains(&key.as_str())
            && !value.starts_with("data:")
            && !value.starts_with('#')
        {
            return Err(format!("{key}={value:?} may be fetched"));
        }
        if key == "id" && !ids.insert(value.to_owned()) {
            return Err(format!("two elements have the id {value}"));
        }
        rest = after;
    }
    Ok(())
}

fn check_raw(name: &str, text: &str) -> Result<(), String> {
    for wanting in ["http://", "https://", "@import", "url(", "fetch(", "XMLHttpRequest", "import("]
    {
        let is_text = name == "script" && text.trim_start().starts_with('[');
        if !is_text && text.contains(wanting) {
            return Err(format!("{name} has {wanting}"));
        }
    }
    Ok(())
}

fn check_policy(html: &str) -> Result<(), String> {
    match html.contains("http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; ") {
        true => Ok(()),
        false => Err("it has no policy that bars requests".to_owned()),
    }
}

#[test]
fn what_is_wrong_is_found() {
    let page = |body: &str| {
        let policy =
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \">";
        check(&format!("<!doctype html>\n<html lang=\"en\">{policy}{body}</html>"))
    };
    assert_eq!(page("<p id=\"a\">x &lt; y</p><svg><rect x=\"1\"/></svg>"), Ok(()));
    for wrong in [
        "<p>",
        "<p></b>",
        "<p id=\"a\"></p><p id=\"a\"></p>",
        "<img src=\"https://example.org/x\">",
        "<a href=\"page.html\"></a>",
        "<p onclick=\"x\"></p>",
        "a & b",
        "a > b",
        "<style>@import x</style>",
        "<script>fetch(x)</script>",
        "<p title=\"<\"></p>",
    ] {
        assert!(page(wrong).is_err(), "{wrong}");
    }
    assert!(check("<!doctype html>\n<html lang=\"en\"></html>").is_err());
}
