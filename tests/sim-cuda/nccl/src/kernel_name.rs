//! The names of kernels, mangled as CUPTI gives those of the real library.

use std::ffi::CString;

use crate::operation::Kind;

/// The symbol of the kernel for an operation: `ncclDevKernel_AllReduce_Sum_f32_RING_LL` with its parameter.
pub fn symbol(kind: Kind, reduction: &str, data_type: &str) -> CString {
    let name = match kind {
        Kind::AllReduce | Kind::Reduce | Kind::ReduceScatter => {
            format!("ncclDevKernel_{kind:?}_{reduction}_{data_type}_RING_LL")
        }
        Kind::AllGather | Kind::Broadcast => format!("ncclDevKernel_{kind:?}_RING_LL"),
        // The real library makes these of sends and receives.
        Kind::AlltoAll | Kind::Gather | Kind::Scatter | Kind::Send | Kind::Recv => {
            "ncclDevKernel_SendRecv".to_owned()
        }
    };
    let mangled = format!("_Z{}{name}24ncclDevKernelArgsStorageILm4096EE", name.len());
    CString::new(mangled).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_real_library() {
        assert_eq!(
            symbol(Kind::AllReduce, "Sum", "f32").to_bytes(),
            b"_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE"
        );
        assert!(symbol(Kind::Recv, "", "f32").to_bytes().starts_with(b"_Z22ncclDevKernel_SendRecv24"));
    }
}
