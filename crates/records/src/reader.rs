//! Reading files of faults.

use std::fs::File;
use std::os::unix::fs::FileExt;

use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::{BoolType, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};

use crate::RecordError;
use crate::fault::{Fault, INVALID};

/// Reads the faults of a file that [`FaultWriter`](crate::FaultWriter) wrote.
pub struct FaultReader {
    file: SerializedFileReader<File>,
    next_group: usize,
}

/// Opens a Parquet file.
///
/// # Errors
/// If it does not begin with `PAR1`, or is cut short.
pub(crate) fn open(file: File) -> Result<SerializedFileReader<File>, RecordError> {
    let mut head = [0; 4];
    if file.read_exact_at(&mut head, 0).is_err() || head != *b"PAR1" {
        return Err(RecordError::NotParquet);
    }
    SerializedFileReader::new(file).map_err(RecordError::Read)
}

impl FaultReader {
    /// Opens `file` and reads its footer.
    ///
    /// # Errors
    /// If it is no Parquet file, or nothing may be concluded from its faults.
    pub fn new(file: File) -> Result<Self, RecordError> {
        let file = open(file)?;
        let reader = Self { file, next_group: 0 };
        match reader.note(INVALID) {
            Some(why) => Err(RecordError::Invalid(why.to_owned())),
            None => Ok(reader),
        }
    }

    /// How many faults the file has.
    #[must_use]
    pub fn row_count(&self) -> u64 {
        let rows = self.file.metadata().file_metadata().num_rows();
        u64::try_from(rows).unwrap_or(0)
    }

    /// The value of a note in the footer; `None` if there is none.
    #[must_use]
    pub fn note(&self, key: &str) -> Option<&str> {
        let notes = self.file.metadata().file_metadata().key_value_metadata()?;
        let note = notes.iter().find(|note| note.key == key)?;
        note.value.as_deref()
    }

    /// The faults of the next row group; `None` at the end.
    ///
    /// # Errors
    /// When the file is cut short or has other columns.
    pub fn next_group(&mut self) -> Result<Option<Vec<Fault>>, RecordError> {
        if self.next_group == self.file.num_row_groups() {
            return Ok(None);
        }
        let group = self.file.get_row_group(self.next_group).map_err(RecordError::Read)?;
        self.next_group += 1;
        read_group(group.as_ref()).map(Some)
    }
}

/// Reads the faults of one row group.
fn read_group(group: &dyn RowGroupReader) -> Result<Vec<Fault>, RecordError> {
    let time_ns = take::<Int64Type>(group, "time_ns")?;
    let process_slot = take::<Int32Type>(group, "process_slot")?;
    let page = take::<Int64Type>(group, "page")?;
    let kind = take::<ByteArrayType>(group, "kind")?;
    let write = take::<BoolType>(group, "write")?;
    let thread = take::<Int32Type>(group, "thread")?;
    let wait_ns = take::<Int32Type>(group, "wait_ns")?;
    let requested_ns = take::<Int32Type>(group, "requested_ns")?;
    let measured_ns = take::<Int32Type>(group, "measured_ns")?;
    let row = |index: usize| {
        Ok(Fault {
            time_ns: time_ns[index].cast_unsigned(),
            process_slot: process_slot[index].cast_unsigned(),
            page: page[index].cast_unsigned(),
            kind: String::from_utf8_lossy(kind[index].data()).parse()?,
            write: write[index],
            thread: thread[index].cast_unsigned(),
            wait_ns: wait_ns[index].cast_unsigned(),
            requested_ns: requested_ns[index].cast_unsigned(),
            measured_ns: measured_ns[index].cast_unsigned(),
        })
    };
    (0..time_ns.len()).map(row).collect()
}

/// Whether there is a column `name` of type `T`.
pub(crate) fn has_column<T: DataType>(group: &dyn RowGroupReader, name: &str) -> bool {
    group.metadata().columns().iter().any(|column| {
        column.column_path().string() == name && column.column_type() == T::get_physical_type()
    })
}

/// All values of the column `name`, one per row; an error if the type differs or a value is
/// missing.
pub(crate) fn take<T: DataType>(
    group: &dyn RowGroupReader,
    name: &'static str,
) -> Result<Vec<T::T>, RecordError> {
    let metadata = group.metadata();
    let index = metadata
        .columns()
        .iter()
        .position(|column| {
            column.column_path().string() == name && column.column_type() == T::get_physical_type()
        })
        .ok_or(RecordError::NoColumn(name))?;
    let rows = usize::try_from(metadata.num_rows()).unwrap_or(0);
    let column = group.get_column_reader(index).map_err(RecordError::Read)?;
    let mut column = get_typed_column_reader::<T>(column);
    let mut values = Vec::with_capacity(rows);
    // Other programs declare values as optional; each row must have one.
    let mut levels = Vec::new();
    let has_levels = metadata.column(index).column_descr().max_def_level() > 0;
    let levels = has_levels.then_some(&mut levels);
    let (read, _, _) =
        column.read_records(rows, levels, None, &mut values).map_err(RecordError::Read)?;
    if read == rows && values.len() == rows { Ok(values) } else { Err(RecordError::NoColumn(name)) }
}
