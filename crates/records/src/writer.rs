//! Writing files of faults, one row group after another.

use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::Result;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;

use crate::RecordError;
use crate::fault::{Fault, FaultKind, INVALID, SCHEMA};

/// Rows of a row group: readers skip whole groups or process them in parallel, and one is buffered
/// in memory.
pub(crate) const GROUP_ROWS: usize = 1 << 20;

/// Writes faults to a Parquet file. Without [`finish`](Self::finish) the file cannot be read.
pub struct FaultWriter<W: Write + Send> {
    file: SerializedFileWriter<W>,
    columns: Columns,
    group_rows: usize,
    row_count: u64,
}

impl<W: Write + Send> FaultWriter<W> {
    /// Begins a file on `sink` that carries `notes` (key and value) in its footer.
    ///
    /// # Errors
    /// When the sink cannot be written to.
    pub fn new(sink: W, notes: &[(&str, &str)]) -> std::result::Result<Self, RecordError> {
        Self::with_group_rows(sink, notes, GROUP_ROWS)
    }

    /// As `new`, with row groups of `group_rows` rows.
    fn with_group_rows(
        sink: W,
        notes: &[(&str, &str)],
        group_rows: usize,
    ) -> std::result::Result<Self, RecordError> {
        let schema = parse_message_type(SCHEMA).map_err(RecordError::Write)?;
        let file = SerializedFileWriter::new(sink, Arc::new(schema), Arc::new(properties(notes)));
        Ok(Self {
            file: file.map_err(RecordError::Write)?,
            columns: Columns::default(),
            group_rows,
            row_count: 0,
        })
    }

    /// Adds faults, in order of time.
    ///
    /// # Errors
    /// When the sink cannot be written to.
    pub fn write(&mut self, faults: &[Fault]) -> std::result::Result<(), RecordError> {
        for fault in faults {
            self.columns.push(fault);
            self.row_count += 1;
            if self.columns.time_ns.len() == self.group_rows {
                self.write_group().map_err(RecordError::Write)?;
            }
        }
        Ok(())
    }

    /// Notes in the footer why nothing may be concluded from these faults; a reader gets this as an
    /// error instead of the faults.
    pub fn invalidate(&mut self, why: &str) {
        let note = KeyValue::new(INVALID.to_owned(), why.to_owned());
        self.file.append_key_value_metadata(note);
    }

    /// How many faults were added.
    #[must_use]
    pub const fn row_count(&self) -> u64 {
        self.row_count
    }

    /// Writes the last rows and the footer. Returns the sink.
    ///
    /// # Errors
    /// When the sink cannot be written to.
    pub fn finish(mut self) -> std::result::Result<W, RecordError> {
        if !self.columns.time_ns.is_empty() {
            self.write_group().map_err(RecordError::Write)?;
        }
        self.file.into_inner().map_err(RecordError::Write)
    }

    /// Writes the buffered rows as a row group.
    fn write_group(&mut self) -> Result<()> {
        let mut group = self.file.next_row_group()?;
        let columns = &self.columns;
        put::<Int64Type, W>(&mut group, &columns.time_ns)?;
        put::<Int32Type, W>(&mut group, &columns.process_slot)?;
        put::<Int64Type, W>(&mut group, &columns.page)?;
        put::<ByteArrayType, W>(&mut group, &columns.kind)?;
        put::<BoolType, W>(&mut group, &columns.write)?;
        put::<Int32Type, W>(&mut group, &columns.thread)?;
        put::<Int32Type, W>(&mut group, &columns.wait_ns)?;
        put::<Int32Type, W>(&mut group, &columns.requested_ns)?;
        put::<Int32Type, W>(&mut group, &columns.measured_ns)?;
        group.close()?;
        self.columns.clear();
        Ok(())
    }
}

/// Writes the next column of a group.
pub(crate) fn put<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &[T::T],
) -> Result<()> {
    let mut column = group.next_column()?.expect("the schema has a column for each call");
    column.typed::<T>().write_batch(values, None, None)?;
    column.close()
}

/// The properties of a file with `notes` (key and value) in its footer.
pub(crate) fn properties(notes: &[(&str, &str)]) -> WriterProperties {
    let notes =
        notes.iter().map(|&(key, value)| KeyValue::new(key.to_owned(), value.to_owned())).collect();
    let time = ColumnPath::from("time_ns");
    WriterProperties::builder()
        .set_created_by(format!("afar {}", env!("CARGO_PKG_VERSION")))
        .set_key_value_metadata(Some(notes))
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        // Times only increase, each by a little.
        .set_column_dictionary_enabled(time.clone(), false)
        .set_column_encoding(time, Encoding::DELTA_BINARY_PACKED)
        .build()
}

/// The rows of the current group. Parquet has signed words only; the schema says unsigned.
#[derive(Default)]
struct Columns {
    time_ns: Vec<i64>,
    process_slot: Vec<i32>,
    page: Vec<i64>,
    kind: Vec<ByteArray>,
    write: Vec<bool>,
    thread: Vec<i32>,
    wait_ns: Vec<i32>,
    requested_ns: Vec<i32>,
    measured_ns: Vec<i32>,
    names: Names,
}

impl Columns {
    /// Adds a row.
    fn push(&mut self, fault: &Fault) {
        self.time_ns.push(fault.time_ns.cast_signed());
        self.process_slot.push(fault.process_slot.cast_signed());
        self.page.push(fault.page.cast_signed());
        self.kind.push(self.names.of(fault.kind));
        self.write.push(fault.write);
        self.thread.push(fault.thread.cast_signed());
        self.wait_ns.push(fault.wait_ns.cast_signed());
        self.requested_ns.push(fault.requested_ns.cast_signed());
        self.measured_ns.push(fault.measured_ns.cast_signed());
    }

    /// Removes all rows.
    fn clear(&mut self) {
        self.time_ns.clear();
        self.process_slot.clear();
        self.page.clear();
        self.kind.clear();
        self.write.clear();
        self.thread.clear();
        self.wait_ns.clear();
        self.requested_ns.clear();
        self.measured_ns.clear();
    }
}

/// The names of all kinds, allocated once: a row only adds a reference.
struct Names([ByteArray; FaultKind::ALL.len()]);

impl Names {
    /// The name of a kind, as Parquet takes it.
    fn of(&self, kind: FaultKind) -> ByteArray {
        self.0[kind as usize].clone()
    }
}

impl Default for Names {
    fn default() -> Self {
        Self(FaultKind::ALL.map(|kind| ByteArray::from(kind.name())))
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::sync::atomic::{AtomicU32, Ordering};

    use proptest::prelude::*;

    use super::*;
    use crate::FaultReader;

    // A file without a name.
    fn scratch() -> File {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("afar-records-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let mut options = File::options();
        let file = options.read(true).write(true).create(true).truncate(true).open(&path).unwrap();
        let _gone = std::fs::remove_file(&path);
        file
    }

    fn fault() -> impl Strategy<Value = Fault> {
        let words = any::<(u64, u32, u64, u32, u32, u32, u32)>();
        (words, 0..FaultKind::ALL.len(), any::<bool>()).prop_map(|(words, kind, write)| Fault {
            time_ns: words.0,
            process_slot: words.1,
            page: words.2,
            kind: FaultKind::ALL[kind],
            write,
            thread: words.3,
            wait_ns: words.4,
            requested_ns: words.5,
            measured_ns: words.6,
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn what_is_written_is_read(
            faults in prop::collection::vec(fault(), 0..40),
            cut in 0_usize..40,
        ) {
            // Several groups, the last of them part full, from two batches.
            let mut writer = FaultWriter::with_group_rows(scratch(), &[], 7).unwrap();
            let (first, second) = faults.split_at(cut.min(faults.len()));
            writer.write(first).unwrap();
            writer.write(second).unwrap();
            prop_assert_eq!(writer.row_count(), faults.len() as u64);
            let file = writer.finish().unwrap();
            let mut reader = FaultReader::new(file).unwrap();
            prop_assert_eq!(reader.row_count(), faults.len() as u64);
            let mut read = Vec::new();
            while let Some(group) = reader.next_group().unwrap() {
                prop_assert!(group.len() <= 7);
                read.extend(group);
            }
            prop_assert_eq!(read, faults);
        }
    }

    #[test]
    fn notes_are_kept() {
        let writer = FaultWriter::new(scratch(), &[("seed", "7")]).unwrap();
        let reader = FaultReader::new(writer.finish().unwrap()).unwrap();
        assert_eq!(reader.note("seed"), Some("7"));
        assert_eq!(reader.note("weather"), None);
    }

    #[test]
    fn other_files_are_refused() {
        let mut text = scratch();
        text.write_all(b"time,page\n1,2\n").unwrap();
        assert!(matches!(FaultReader::new(text), Err(RecordError::NotParquet)));
        assert!(matches!(FaultReader::new(scratch()), Err(RecordError::NotParquet)));
    }

    #[test]
    fn a_full_disk_is_told() {
        let disk = File::options().write(true).open("/dev/full").unwrap();
        let error =
            FaultWriter::new(disk, &[]).and_then(FaultWriter::finish).map(drop).unwrap_err();
        assert!(matches!(error, RecordError::Write(_)), "{error}");
    }
}
