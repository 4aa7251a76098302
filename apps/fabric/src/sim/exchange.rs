//! How flows come about, by the names that flags, files and records have for it.

use netsim::Exchange;
use records::FlowExchange;

/// As records have it.
pub(super) const fn recorded(exchange: Exchange) -> FlowExchange {
    match exchange {
        Exchange::OneWay => FlowExchange::OneWay,
        Exchange::Read => FlowExchange::Read,
        Exchange::Write => FlowExchange::Write,
    }
}

/// As a record has it.
pub(super) const fn read(exchange: FlowExchange) -> Exchange {
    match exchange {
        FlowExchange::OneWay => Exchange::OneWay,
        FlowExchange::Read => Exchange::Read,
        FlowExchange::Write => Exchange::Write,
    }
}

/// Every one, by its name.
pub(super) const NAMED: [(&str, Exchange); 3] = [
    (FlowExchange::OneWay.name(), Exchange::OneWay),
    (FlowExchange::Read.name(), Exchange::Read),
    (FlowExchange::Write.name(), Exchange::Write),
];
