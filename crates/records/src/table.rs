//! Small tables of named columns, for demand or tenants in Parquet.

use std::fs::File;
use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Compression, ConvertedType, Repetition, Type as Physical, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::FileReader;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::record::Field;
use parquet::schema::types::Type;

use crate::RecordError;
use crate::reader::open;

/// Values of one column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Column {
    /// Texts in UTF-8.
    Text(Vec<String>),
    /// Unsigned numbers.
    Numbers(Vec<u64>),
}

/// The most columns of a table, and the most bytes of its cells as text: the sizes that a file
/// declares are not trusted.
const COLUMNS_MAX: usize = 64;
const TEXT_MAX: usize = 4 << 30;

/// The rows of a Parquet file as text, cells separated by commas, column names first. A missing
/// value is an empty cell.
///
/// # Errors
/// If the file is no Parquet file, has columns of lists or groups, or is too large.
pub fn read_table(file: File) -> Result<String, RecordError> {
    let file = open(file).map_err(|error| match error {
        RecordError::Read(source) => RecordError::Table(source),
        other => other,
    })?;
    let schema = file.metadata().file_metadata().schema();
    let fields = schema.get_fields();
    if fields.len() > COLUMNS_MAX {
        return Err(RecordError::TooLarge);
    }
    let mut text = String::new();
    for (at, field) in fields.iter().enumerate() {
        if !field.is_primitive() || field.name().contains([',', '\n']) {
            return Err(RecordError::Cell(field.name().to_owned()));
        }
        text += if at > 0 { "," } else { "" };
        text += field.name();
    }
    text.push('\n');
    for row in file.get_row_iter(None).map_err(RecordError::Table)? {
        let row = row.map_err(RecordError::Table)?;
        for (at, (name, field)) in row.get_column_iter().enumerate() {
            text += if at > 0 { "," } else { "" };
            push(&mut text, name, field)?;
        }
        text.push('\n');
        if text.len() > TEXT_MAX {
            return Err(RecordError::TooLarge);
        }
    }
    Ok(text)
}

/// Appends the text of a value of column `name`.
fn push(text: &mut String, name: &str, field: &Field) -> Result<(), RecordError> {
    match field {
        Field::Null => {}
        Field::Str(value) if !value.contains([',', '\n']) => *text += value,
        Field::Bool(value) => *text += &value.to_string(),
        Field::Byte(value) => *text += &value.to_string(),
        Field::Short(value) => *text += &value.to_string(),
        Field::Int(value) => *text += &value.to_string(),
        Field::Long(value) => *text += &value.to_string(),
        Field::UByte(value) => *text += &value.to_string(),
        Field::UShort(value) => *text += &value.to_string(),
        Field::UInt(value) => *text += &value.to_string(),
        Field::ULong(value) => *text += &value.to_string(),
        Field::Float(value) => *text += &value.to_string(),
        Field::Double(value) => *text += &value.to_string(),
        _ => return Err(RecordError::Cell(name.to_owned())),
    }
    Ok(())
}

/// Writes columns, all of one length, as a Parquet file with one row group.
///
/// # Errors
/// When the sink cannot be written to.
pub fn write_table<W: Write + Send>(sink: W, columns: &[(&str, Column)]) -> Result<W, RecordError> {
    write(sink, columns).map_err(RecordError::Table)
}

/// As `write_table`, with the library's errors.
fn write<W: Write + Send>(sink: W, columns: &[(&str, Column)]) -> Result<W, ParquetError> {
    let field = |(name, column): &(&str, Column)| -> Result<_, ParquetError> {
        let (physical, converted) = match column {
            Column::Text(_) => (Physical::BYTE_ARRAY, ConvertedType::UTF8),
            Column::Numbers(_) => (Physical::INT64, ConvertedType::UINT_64),
        };
        let field = Type::primitive_type_builder(name, physical);
        let field = field.with_converted_type(converted).with_repetition(Repetition::REQUIRED);
        field.build().map(Arc::new)
    };
    let fields = columns.iter().map(field).collect::<Result<_, _>>()?;
    let schema = Type::group_type_builder("table").with_fields(fields).build()?;
    let properties = WriterProperties::builder()
        .set_created_by(format!("afar {}", env!("CARGO_PKG_VERSION")))
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .build();
    let mut file = SerializedFileWriter::new(sink, Arc::new(schema), Arc::new(properties))?;
    let mut group = file.next_row_group()?;
    for (_, column) in columns {
        match column {
            Column::Text(values) => {
                let values: Vec<ByteArray> =
                    values.iter().map(|text| ByteArray::from(text.as_str())).collect();
                put::<ByteArrayType, W>(&mut group, &values)?;
            }
            Column::Numbers(values) => {
                let values: Vec<i64> = values.iter().map(|value| value.cast_signed()).collect();
                put::<Int64Type, W>(&mut group, &values)?;
            }
        }
    }
    group.close()?;
    file.into_inner()
}

/// Writes the next column of a group.
fn put<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &[T::T],
) -> Result<(), ParquetError> {
    let mut column = group.next_column()?.expect("the schema has a column for each call");
    column.typed::<T>().write_batch(values, None, None)?;
    column.close()
}

#[cfg(test)]
mod tests {
    use std::io::Seek;

    use super::*;

    fn scratch() -> File {
        let path = std::env::temp_dir().join(format!("afar-table-{}", std::process::id()));
        let mut options = File::options();
        let file = options.read(true).write(true).create(true).truncate(true).open(&path);
        let _gone = std::fs::remove_file(&path);
        file.expect("a file")
    }

    #[test]
    fn what_is_written_is_read() {
        let columns = [
            ("tenant", Column::Text(vec!["a".to_owned(), "é".to_owned()])),
            ("memory", Column::Numbers(vec![1 << 40, u64::MAX])),
        ];
        let mut file = write_table(scratch(), &columns).expect("it can be written");
        file.rewind().expect("it can be");
        let text = read_table(file).expect("it can be read");
        assert_eq!(text, "tenant,memory\na,1099511627776\né,18446744073709551615\n");
        let columns = [("a", Column::Text(vec!["x,y".to_owned()]))];
        let file = write_table(scratch(), &columns).expect("it can be written");
        assert!(matches!(read_table(file), Err(RecordError::Cell(name)) if name == "a"));
        assert!(matches!(read_table(scratch()), Err(RecordError::NotParquet)));
    }
}
