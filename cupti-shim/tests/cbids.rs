//! The numbers of the collected calls are those of the names in the fixture, and the calls that everything hangs on are
//! among them.

use std::collections::BTreeMap;

use gtrace_cupti::cbids;

#[test]
fn numbers_agree_with_names() {
    let mut by_domain: BTreeMap<&str, BTreeMap<u16, &str>> = BTreeMap::new();
    for line in include_str!("fixtures/collected_cbids.csv").lines().skip(1) {
        let [domain, name, value] = line.split(',').collect::<Vec<_>>()[..] else {
            panic!("three columns: {line}")
        };
        let value = value.parse().unwrap_or_else(|error| panic!("{line}: {error}"));
        by_domain.entry(domain).or_default().insert(value, name);
    }
    for (domain, numbers) in [("driver", cbids::DRIVER), ("runtime", cbids::RUNTIME)] {
        assert!(numbers.is_sorted(), "{domain}: they are searched by halves");
        let expected: Vec<u16> = by_domain[domain].keys().copied().collect();
        assert_eq!(numbers, expected, "{domain}");
    }
    for (cbid, name) in [
        (307, "cuLaunchKernel"),
        (442, "cuLaunchKernel_ptsz"),
        (652, "cuLaunchKernelEx"),
        (514, "cuGraphLaunch"),
        (277, "cuMemcpyHtoDAsync_v2"),
        (279, "cuMemcpyDtoHAsync_v2"),
        (126, "cuStreamSynchronize"),
        (121, "cuEventSynchronize"),
        (17, "cuCtxSynchronize"),
        (243, "cuMemAlloc_v2"),
        (245, "cuMemFree_v2"),
    ] {
        assert_eq!(by_domain["driver"].get(&cbid), Some(&name));
    }
    assert_eq!(by_domain["runtime"].get(&211), Some(&"cudaLaunchKernel_v7000"));
    assert!(cbids::DRIVER_LAUNCHES.iter().all(|cbid| by_domain["driver"][cbid].contains("Kernel")));
    assert!(cbids::DRIVER_LAUNCHES.is_sorted());
}

#[test]
fn queries_are_left_out() {
    for query in [120, 125, 439] {
        assert!(!cbids::is_collected(cbids::DRIVER, query));
    }
    assert!(!cbids::is_collected(cbids::DRIVER, 65_536 + 307), "a number beyond 16 bits is not cut");
}

#[test]
fn the_light_ones_are_a_part_and_hold_all_launches() {
    assert!(cbids::DRIVER_LIGHT.is_sorted());
    assert!(cbids::DRIVER_LIGHT.iter().all(|&cbid| cbids::is_collected(cbids::DRIVER, cbid.into())));
    assert!(cbids::DRIVER_LAUNCHES.iter().all(|&cbid| cbids::is_collected(cbids::DRIVER_LIGHT, cbid.into())));
}
