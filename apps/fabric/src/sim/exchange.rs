//! How flows come about, by the names that flags, files and records have for it.

use netsim::Exchange;
use records::FlowExchange;

/// An exchange as records have it.
pub(super) const fn recorded(exchange: Exchange) -> FlowExchange {
    match exchange {
        Exchange::OneWay => FlowExchange::OneWay,
        Exchange::Read => FlowExchange::Read,
        Exchange::Write => FlowExchange::Write,
    }
}

/// The exchange that a record has.
pub(super) const fn read(exchange: FlowExchange) -> Exchange {
    match exchange {
        FlowExchange::OneWay => Exchange::OneWay,
        FlowExchange::Read => Exchange::Read,
        FlowExchange::Write => Exchange::Write,
    }
}

/// Every exchange by its name.
pub(super) const NAMED: [(&str, Exchange); 3] = [
    (FlowExchange::OneWay.name(), Exchange::OneWay),
    (FlowExchange::Read.name(), Exchange::Read),
    (FlowExchange::Write.name(), Exchange::Write),
];
