//! Texts with names, for errors that name the place.

use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::str::FromStr;

use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Visitor};
use toml::Spanned;

use crate::{DocumentError, toml_text};

/// A text and its name.
#[derive(Debug, Clone)]
pub struct Source {
    /// The name in messages: a file's path, or `--set KEY=VALUE`.
    pub name: String,
    /// The contents.
    pub text: String,
}

/// A value of TOML as it was written: a number or a string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text(pub String);

/// A value with its place in the text.
pub type Value = Spanned<Text>;

impl Source {
    /// Reads a file; a Parquet file as if it were CSV.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn read(path: &Path) -> Result<Self, DocumentError> {
        let unreadable = |source| DocumentError::Unreadable { path: path.to_owned(), source };
        let name = path.display().to_string();
        let text = if is_parquet(&name) {
            let file = std::fs::File::open(path).map_err(unreadable)?;
            records::read_table(file)
                .map_err(|source| DocumentError::Table { place: name.clone(), source })?
        } else {
            std::fs::read_to_string(path).map_err(unreadable)?
        };
        console::terminal::detail(|| format!("read {name}"));
        Ok(Self { name, text })
    }

    /// The setting `KEY=VALUE` as the text of a file.
    ///
    /// # Errors
    /// If `setting` is not of that form.
    pub fn of_setting(setting: &str) -> Result<Self, DocumentError> {
        let refused = || DocumentError::Set(setting.to_owned());
        let (key, value) = setting.split_once('=').ok_or_else(refused)?;
        let is_key = |c: char| c.is_ascii_alphanumeric() || "._".contains(c);
        if key.is_empty() || !key.chars().all(is_key) || value.contains(['"', '\\', '\n']) {
            return Err(refused());
        }
        let text = format!("{key}=\"{value}\"");
        Ok(Self { name: format!("--set {setting}"), text })
    }

    /// Parses the text as TOML.
    ///
    /// # Errors
    /// The place of the first error, and what is wrong.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, DocumentError> {
        toml::from_str(&self.text).map_err(|error| {
            let message = toml_text::told(&self.text, error.message());
            self.wrong(&error.span().unwrap_or(0..0), message)
        })
    }

    /// Parses a value.
    ///
    /// # Errors
    /// The place of the value, if it is no `T`.
    pub fn value<T>(&self, value: &Value) -> Result<T, DocumentError>
    where
        T: FromStr<Err: fmt::Display>,
    {
        let Text(text) = value.get_ref();
        text.parse().map_err(|error: T::Err| self.wrong(&value.span(), error.to_string()))
    }

    /// The error `message` at the place of `span`.
    #[must_use]
    pub fn wrong(&self, span: &Range<usize>, message: impl Into<String>) -> DocumentError {
        DocumentError::At { place: self.place(span.start), message: message.into() }
    }

    /// `file:line:column` of offset `at`, each from 1. A setting has its name alone, and a Parquet
    /// file its row and column name.
    #[must_use]
    pub fn place(&self, at: usize) -> String {
        if self.name.starts_with("--set") {
            return self.name.clone();
        }
        if is_parquet(&self.name) {
            let before = self.text.get(..at).unwrap_or(&self.text);
            let row = before.matches('\n').count();
            let within = before.rsplit('\n').next().unwrap_or_default();
            let header = self.text.lines().next().unwrap_or_default();
            let name = header.split(',').nth(within.matches(',').count()).unwrap_or_default();
            return format!("{}: row {row}, column {name}", self.name);
        }
        toml_text::place(&self.name, &self.text, at)
    }
}

/// Whether a file is a Parquet file, by its name.
#[must_use]
pub fn is_parquet(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|ending| ending.eq_ignore_ascii_case("parquet"))
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;

        impl Visitor<'_> for Any {
            type Value = Text;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, or a number and a unit in quotes")
            }

            fn visit_str<E>(self, text: &str) -> Result<Text, E> {
                Ok(Text(text.to_owned()))
            }

            fn visit_i64<E>(self, number: i64) -> Result<Text, E> {
                Ok(Text(number.to_string()))
            }

            fn visit_u64<E>(self, number: u64) -> Result<Text, E> {
                Ok(Text(number.to_string()))
            }

            fn visit_f64<E>(self, number: f64) -> Result<Text, E> {
                Ok(Text(number.to_string()))
            }

            fn visit_bool<E>(self, truth: bool) -> Result<Text, E> {
                Ok(Text(truth.to_string()))
            }
        }

        deserializer.deserialize_any(Any)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Document {
        price: Value,
    }

    fn refused(text: &str) -> String {
        let source = Source { name: "f.toml".to_owned(), text: text.to_owned() };
        let read = source.parse::<Document>();
        let read = read.and_then(|document| source.value::<measure::Money>(&document.price));
        read.expect_err("it cannot be").to_string()
    }

    #[test]
    fn places_are_those_of_values() {
        assert_eq!(
            refused("# é\n  price = -5"),
            "f.toml:2:11: \"-5\": a price cannot be negative; write e.g. 2400"
        );
        assert!(refused("price = nan").starts_with("f.toml:1:9: \"NaN\": not a price"));
        assert!(refused("a = 1").starts_with("f.toml:1:1: unknown field `a`, expected `price`"));
        assert!(refused("price = ").starts_with("f.toml:1:"));
        assert!(refused("price = []").contains("expected a number, or a number and a unit"));
    }

    #[test]
    fn rows_of_parquet_have_columns_with_names() {
        let text = "tenant,iops\na,1\nb,x\n".to_owned();
        let source = Source { name: "t.parquet".to_owned(), text };
        assert_eq!(source.wrong(&(18..18), "no").to_string(), "t.parquet: row 2, column iops: no");
    }

    #[test]
    fn settings_are_named_as_they_were_given() {
        let source = Source::of_setting("price=x").expect("it is one");
        let document = source.parse::<Document>().expect("it is one");
        let error = source.value::<measure::Money>(&document.price).expect_err("it is none");
        assert!(error.to_string().starts_with("--set price=x: \"x\": not a price"), "{error}");
        for text in ["price", "=1", "a b=1", "a=\"", "a=\n"] {
            assert!(Source::of_setting(text).is_err(), "{text}");
        }
    }
}
