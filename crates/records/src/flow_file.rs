//! Files of flows. Lists of other programs can be read too, if they have the columns.

use std::fs::File;
use std::io::Write;
use std::sync::Arc;

use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type};
use parquet::errors::Result as ParquetResult;
use parquet::file::reader::{FileReader, RowGroupReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use crate::RecordError;
use crate::flow::{FlowExchange, FlowRow, FlowStart, SCHEMA};
use crate::reader::{has_column, open, take};
use crate::writer::{GROUP_ROWS, properties, put};

/// Writes flows as a Parquet file that carries `notes` (key and value) in its footer.
///
/// # Errors
/// When the sink cannot be written to.
pub fn write_flows<W: Write + Send>(
    sink: W,
    notes: &[(&str, &str)],
    rows: &[FlowRow],
) -> Result<W, RecordError> {
    let schema = parse_message_type(SCHEMA).map_err(RecordError::Write)?;
    let file = SerializedFileWriter::new(sink, Arc::new(schema), Arc::new(properties(notes)));
    let mut file = file.map_err(RecordError::Write)?;
    for rows in rows.chunks(GROUP_ROWS) {
        write_group(&mut file, rows).map_err(RecordError::Write)?;
    }
    file.into_inner().map_err(RecordError::Write)
}

/// Writes one row group.
fn write_group<W: Write + Send>(
    file: &mut SerializedFileWriter<W>,
    rows: &[FlowRow],
) -> ParquetResult<()> {
    let longs =
        |of: fn(&FlowRow) -> u64| rows.iter().map(|row| of(row).cast_signed()).collect::<Vec<_>>();
    let words =
        |of: fn(&FlowRow) -> u32| rows.iter().map(|row| of(row).cast_signed()).collect::<Vec<_>>();
    let slowdowns: Vec<f64> = rows.iter().map(|row| row.slowdown).collect();
    let mut group = file.next_row_group()?;
    put::<Int64Type, W>(&mut group, &longs(|row| row.flow.start_ps))?;
    put::<Int32Type, W>(&mut group, &words(|row| row.flow.src))?;
    put::<Int32Type, W>(&mut group, &words(|row| row.flow.dst))?;
    put::<Int64Type, W>(&mut group, &longs(|row| row.flow.bytes))?;
    put::<Int64Type, W>(&mut group, &longs(|row| row.completion_ps))?;
    put::<Int64Type, W>(&mut group, &longs(|row| row.ideal_ps))?;
    put::<DoubleType, W>(&mut group, &slowdowns)?;
    put::<Int32Type, W>(&mut group, &words(|row| row.sent_packets))?;
    put::<Int32Type, W>(&mut group, &words(|row| row.dropped_packets))?;
    let exchange = |row: &FlowRow| row.flow.exchange.unwrap_or(FlowExchange::OneWay).name();
    let exchanges: Vec<ByteArray> = rows.iter().map(|row| ByteArray::from(exchange(row))).collect();
    put::<ByteArrayType, W>(&mut group, &exchanges)?;
    group.close()?;
    Ok(())
}

/// Reads the columns `start_ps`, `src`, `dst` and `bytes` of a Parquet file, as whole numbers of 32
/// or 64 bits, and `exchange` if there is one; other columns are ignored.
///
/// # Errors
/// If the file is no Parquet file, is cut short, lacks one of these columns, or has an unknown
/// exchange.
pub fn read_flows(file: File) -> Result<Vec<FlowStart>, RecordError> {
    let file = open(file)?;
    let mut flows = Vec::new();
    for index in 0..file.num_row_groups() {
        let group = file.get_row_group(index).map_err(RecordError::Read)?;
        let group = group.as_ref();
        let (start_ps, bytes) = (whole(group, "start_ps")?, whole(group, "bytes")?);
        let (src, dst) = (whole(group, "src")?, whole(group, "dst")?);
        let exchanges = exchanges(group, start_ps.len())?;
        let host = |host: u64| u32::try_from(host).unwrap_or(u32::MAX);
        flows.extend((0..start_ps.len()).map(|row| FlowStart {
            start_ps: start_ps[row],
            src: host(src[row]),
            dst: host(dst[row]),
            bytes: bytes[row],
            exchange: exchanges[row],
        }));
    }
    Ok(flows)
}

/// The column `exchange` of a group of `count` rows; `None` for each row without that column.
fn exchanges(
    group: &dyn RowGroupReader,
    count: usize,
) -> Result<Vec<Option<FlowExchange>>, RecordError> {
    if !has_column::<ByteArrayType>(group, "exchange") {
        return Ok(vec![None; count]);
    }
    let texts = take::<ByteArrayType>(group, "exchange")?;
    let one = |text: ByteArray| String::from_utf8_lossy(text.data()).parse().map(Some);
    texts.into_iter().map(one).collect()
}

/// A column of whole numbers of 32 or 64 bits.
fn whole(group: &dyn RowGroupReader, name: &'static str) -> Result<Vec<u64>, RecordError> {
    if has_column::<Int32Type>(group, name) {
        let words = take::<Int32Type>(group, name)?;
        return Ok(words.into_iter().map(|word| u64::from(word.cast_unsigned())).collect());
    }
    let longs = take::<Int64Type>(group, name)?;
    Ok(longs.into_iter().map(i64::cast_unsigned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_come_back_as_they_were_asked() {
        let name = std::env::temp_dir().join(format!("afar-flows-{}", std::process::id()));
        let row = |number: u32| FlowRow {
            flow: FlowStart {
                start_ps: u64::from(number) << 40,
                src: number,
                dst: u32::MAX - number,
                bytes: u64::MAX - u64::from(number),
                exchange: Some(FlowExchange::ALL[number as usize % 3]),
            },
            completion_ps: 5,
            ideal_ps: 4,
            slowdown: 1.25,
            sent_packets: 3,
            dropped_packets: 0,
        };
        let rows: Vec<FlowRow> = (0..1000).map(row).collect();
        let file = File::create(&name).unwrap();
        write_flows(file, &[("seed", "7")], &rows).unwrap();
        let flows: Vec<FlowStart> = rows.iter().map(|row| row.flow).collect();
        assert_eq!(read_flows(File::open(&name).unwrap()).unwrap(), flows);
        std::fs::write(&name, "start_ps,src\n").unwrap();
        let refused = read_flows(File::open(&name).unwrap());
        assert!(matches!(refused, Err(RecordError::NotParquet)));
        std::fs::remove_file(&name).unwrap();
    }

    #[test]
    fn a_full_disk_is_told() {
        let disk = File::options().write(true).open("/dev/full").unwrap();
        assert!(matches!(write_flows(disk, &[], &[]), Err(RecordError::Write(_))));
    }
}
