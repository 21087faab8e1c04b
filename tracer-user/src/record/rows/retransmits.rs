//! Rows of `retransmits`.

use tracer_abi::kernel::RetransmitRecord;

use crate::event::MonoNs;
use crate::record::objects::connection;
use crate::store::schema::Retransmit;

/// A row out of a segment that was sent again; `None` if its connection is not known.
#[must_use]
pub fn retransmit_row(record: &RetransmitRecord) -> Option<Retransmit> {
    Some(Retransmit {
        time_ns: MonoNs(record.header.time_ns as i64),
        connection: connection(&record.addresses)?,
    })
}
