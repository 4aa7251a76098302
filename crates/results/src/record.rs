//! Records to JSON and back.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A record with a schema of its own.
pub trait Record: Serialize + DeserializeOwned {
    /// Its name and version, such as `afar.findings/3`.
    const SCHEMA: &'static str;
}

/// Why a text is not a record of the wanted kind.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The text is no JSON, or a field is missing, unknown or of another type.
    #[error("it cannot be read as a record: {0}")]
    Json(#[from] serde_json::Error),
    /// The record is of another kind or version.
    #[error("{}, not of \"{wanted}\"", kind(found))]
    Schema {
        /// The schema that the record names; empty if it names none.
        found: String,
        /// The schema of the type that was to be read.
        wanted: &'static str,
    },
}

/// The kind of record that was found, for messages.
fn kind(found: &str) -> String {
    match found {
        "" => "it does not say of which kind it is: it is no record of afar".to_owned(),
        found => format!("it is a record of \"{found}\""),
    }
}

/// The record as indented JSON that ends with a line feed; its schema comes first.
///
/// # Panics
/// Never: records are plain data, which has a JSON form.
#[must_use]
pub fn write<R: Record>(record: &R) -> String {
    let whole = Whole { schema: R::SCHEMA, record };
    serde_json::to_string_pretty(&whole).expect("plain data has a JSON form") + "\n"
}

#[derive(Serialize)]
struct Whole<'a, R> {
    schema: &'static str,
    #[serde(flatten)]
    record: &'a R,
}

/// Reads a record that [`write()`] has written.
///
/// # Errors
/// If the text is no record of this kind and version.
pub fn read<R: Record>(text: &str) -> Result<R, ReadError> {
    read_value(serde_json::from_str(text)?)
}

/// As [`read`], from parsed JSON.
///
/// # Errors
/// As [`read`].
pub fn read_value<R: Record>(value: Value) -> Result<R, ReadError> {
    let found = value.get("schema").and_then(Value::as_str).unwrap_or_default();
    if found != R::SCHEMA {
        return Err(ReadError::Schema { found: found.to_owned(), wanted: R::SCHEMA });
    }
    Ok(read_body(value)?)
}

/// As [`read_value`], for a caller that has checked the schema itself.
///
/// # Errors
/// When a field is missing, unknown or of another type.
pub fn read_body<R: Record>(mut value: Value) -> Result<R, serde_json::Error> {
    if let Value::Object(fields) = &mut value {
        fields.remove("schema");
    }
    serde_json::from_value(value)
}

/// Indented JSON that ends with a line feed, as records are written.
#[must_use]
pub fn json_text(value: &Value) -> String {
    let text = serde_json::to_string_pretty(value);
    text.expect("plain data has a JSON form") + "\n"
}
