//! Copies and memsets.

use std::ffi::c_void;

use super::call::api;
use crate::context;
use crate::copy::{End, copy, set};
use crate::error;
use crate::stream;

/// The stream of the functions that take none.
const DEFAULT: *mut c_void = std::ptr::null_mut();

api! {
    /// Copies between any two addresses.
    fn cuMemcpy[twin cuMemcpy_ptds](dst: u64, src: u64, len: usize) {
        copy(&stream::resolve(DEFAULT)?, End::Any(dst), End::Any(src), len, false)
    }

    /// Host to device.
    fn cuMemcpyHtoD_v2[twin cuMemcpyHtoD_v2_ptds](dst: u64, src: *const c_void, len: usize) {
        copy(&stream::resolve(DEFAULT)?, End::Device(dst), End::Host(src.cast_mut().cast()), len, false)
    }

    /// Device to host.
    fn cuMemcpyDtoH_v2[twin cuMemcpyDtoH_v2_ptds](dst: *mut c_void, src: u64, len: usize) {
        copy(&stream::resolve(DEFAULT)?, End::Host(dst.cast()), End::Device(src), len, false)
    }

    /// Device to device.
    fn cuMemcpyDtoD_v2[twin cuMemcpyDtoD_v2_ptds](dst: u64, src: u64, len: usize) {
        copy(&stream::resolve(DEFAULT)?, End::Device(dst), End::Device(src), len, false)
    }

    /// Copies between any two addresses, in the order of a stream.
    fn cuMemcpyAsync[twin cuMemcpyAsync_ptsz](dst: u64, src: u64, len: usize, handle: *mut c_void) {
        copy(&stream::resolve(handle)?, End::Any(dst), End::Any(src), len, true)
    }

    /// Host to device, in the order of a stream.
    fn cuMemcpyHtoDAsync_v2[twin cuMemcpyHtoDAsync_v2_ptsz](
        dst: u64, src: *const c_void, len: usize, handle: *mut c_void,
    ) {
        copy(&stream::resolve(handle)?, End::Device(dst), End::Host(src.cast_mut().cast()), len, true)
    }

    /// Device to host, in the order of a stream.
    fn cuMemcpyDtoHAsync_v2[twin cuMemcpyDtoHAsync_v2_ptsz](
        dst: *mut c_void, src: u64, len: usize, handle: *mut c_void,
    ) {
        copy(&stream::resolve(handle)?, End::Host(dst.cast()), End::Device(src), len, true)
    }

    /// Device to device, in the order of a stream.
    fn cuMemcpyDtoDAsync_v2[twin cuMemcpyDtoDAsync_v2_ptsz](dst: u64, src: u64, len: usize, handle: *mut c_void) {
        copy(&stream::resolve(handle)?, End::Device(dst), End::Device(src), len, true)
    }

    /// Between two contexts.
    fn cuMemcpyPeer[twin cuMemcpyPeer_ptds](
        dst: u64, dst_context: *mut c_void, src: u64, src_context: *mut c_void, len: usize,
    ) {
        context::by_handle(dst_context)?;
        context::by_handle(src_context)?;
        copy(&stream::resolve(DEFAULT)?, End::Device(dst), End::Device(src), len, false)
    }

    /// Between two contexts, in the order of a stream.
    fn cuMemcpyPeerAsync[twin cuMemcpyPeerAsync_ptsz](
        dst: u64, dst_context: *mut c_void, src: u64, src_context: *mut c_void, len: usize, handle: *mut c_void,
    ) {
        context::by_handle(dst_context)?;
        context::by_handle(src_context)?;
        copy(&stream::resolve(handle)?, End::Device(dst), End::Device(src), len, true)
    }

    /// Sets bytes.
    fn cuMemsetD8_v2[twin cuMemsetD8_v2_ptds](dst: u64, value: u8, count: usize) {
        set(&stream::resolve(DEFAULT)?, dst, u32::from(value), 1, count, false)
    }

    /// Sets 16-bit words.
    fn cuMemsetD16_v2[twin cuMemsetD16_v2_ptds](dst: u64, value: u16, count: usize) {
        set(&stream::resolve(DEFAULT)?, dst, u32::from(value), 2, count, false)
    }

    /// Sets 32-bit words.
    fn cuMemsetD32_v2[twin cuMemsetD32_v2_ptds](dst: u64, value: u32, count: usize) {
        set(&stream::resolve(DEFAULT)?, dst, value, 4, count, false)
    }

    /// Sets bytes, in the order of a stream.
    fn cuMemsetD8Async[twin cuMemsetD8Async_ptsz](dst: u64, value: u8, count: usize, handle: *mut c_void) {
        set(&stream::resolve(handle)?, dst, u32::from(value), 1, count, true)
    }

    /// Sets 16-bit words, in the order of a stream.
    fn cuMemsetD16Async[twin cuMemsetD16Async_ptsz](dst: u64, value: u16, count: usize, handle: *mut c_void) {
        set(&stream::resolve(handle)?, dst, u32::from(value), 2, count, true)
    }

    /// Sets 32-bit words, in the order of a stream.
    fn cuMemsetD32Async[twin cuMemsetD32Async_ptsz](dst: u64, value: u32, count: usize, handle: *mut c_void) {
        set(&stream::resolve(handle)?, dst, value, 4, count, true)
    }

    /// Advice on managed memory, accepted without effect.
    fn cuMemAdvise[](address: u64, len: usize, advice: i32, device: i32) {
        let _ = (advice, device);
        crate::memory::device_range(address, len).map(drop).map_err(|_| error::INVALID_VALUE)
    }

    /// Prefetch of managed memory, accepted without effect: its pages never move.
    fn cuMemPrefetchAsync[twin cuMemPrefetchAsync_ptsz](address: u64, len: usize, device: i32, handle: *mut c_void) {
        let _ = device;
        stream::resolve(handle)?;
        crate::memory::device_range(address, len).map(drop)
    }
}
