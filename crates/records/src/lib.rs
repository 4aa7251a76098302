//! Bulk records as Parquet files, for programs that read those: DuckDB, pandas, Polars.
//!
//! ```text
//! Fault ─► FaultWriter ─► columns of a row group ─► file ─► FaultReader ─► Fault
//! FlowRow ─► write_flows ─► file ─► read_flows ─► FlowStart
//! ```
//!
//! Small tables (demand, tenants) are converted from and to text, so that they are parsed and
//! refused as CSV is: [`read_table`], [`write_table`].
//!
//! A crate of its own because its dependency takes the longest to compile. Values are never scaled:
//! the unit is part of a column's name.

mod error;
mod fault;
mod flow;
mod flow_file;
mod reader;
mod table;
mod writer;

pub use error::RecordError;

pub use fault::{FAULTS_SCHEMA, Fault, FaultKind};
pub use flow::{FlowExchange, FlowRow, FlowStart};
pub use flow_file::{read_flows, write_flows};
pub use reader::FaultReader;
pub use table::{Column, read_table, write_table};
pub use writer::FaultWriter;
