//! Names of the functions behind CUPTI's call-back ids.

use std::collections::HashMap;
use std::sync::LazyLock;

use tracer_abi::shim::ApiDomain;

use crate::event::Text;

/// `domain,cbid,name` of CUDA 11.7 to 13.5: numbers are never changed or reused. Suffixes that tell versions and
/// per-thread streams apart (`_v2`, `_v7000`, `_ptsz`) are gone.
const TABLE: &str = include_str!("cbids.csv");

static NAMES: LazyLock<HashMap<(ApiDomain, u32), Text>> = LazyLock::new(|| {
    TABLE
        .lines()
        .filter_map(|line| {
            let mut parts = line.split(',');
            let domain = match parts.next()? {
                "driver" => ApiDomain::Driver,
                "runtime" => ApiDomain::Runtime,
                _ => return None,
            };
            Some(((domain, parts.next()?.parse().ok()?), Text::from(parts.next()?)))
        })
        .collect()
});

/// The function's name; `driver_912` for one that is newer than the table.
pub(super) fn api_name(domain: ApiDomain, cbid: u32) -> Text {
    NAMES.get(&(domain, cbid)).cloned().unwrap_or_else(|| {
        Text::from(match domain {
            ApiDomain::Driver => format!("driver_{cbid}"),
            ApiDomain::Runtime => format!("runtime_{cbid}"),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_that_everything_hangs_on() {
        let driver = [
            (307, "cuLaunchKernel"),
            (442, "cuLaunchKernel"),
            (277, "cuMemcpyHtoDAsync"),
            (126, "cuStreamSynchronize"),
        ];
        for (cbid, name) in driver {
            assert_eq!(&*api_name(ApiDomain::Driver, cbid), name);
        }
        assert_eq!(&*api_name(ApiDomain::Runtime, 211), "cudaLaunchKernel");
        assert_eq!(&*api_name(ApiDomain::Runtime, 99_999), "runtime_99999");
        assert_eq!(NAMES.len(), TABLE.lines().count() - 1, "every line is used");
    }
}
