//! Handles. What the API hands out are numbers in the shape of pointers, never looked into: a wrong one is not found
//! and gives an error code, whatever it is.

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};

/// All living objects of one kind, by handle.
pub struct Table<T> {
    base: u64,
    next: AtomicU64,
    objects: RwLock<Option<HashMap<u64, Arc<T>>>>,
}

impl<T> Table<T> {
    /// A table whose handles carry `tag`, so that a handle of another kind is never valid here.
    pub const fn new(tag: u64) -> Self {
        Self { base: 0x5a00_0000_0000 + (tag << 32), next: AtomicU64::new(1), objects: RwLock::new(None) }
    }

    /// Adds the object that `make` builds from its handle.
    pub fn insert(&self, make: impl FnOnce(*mut c_void) -> T) -> Arc<T> {
        let handle = self.base + self.next.fetch_add(1, Ordering::Relaxed) * 16;
        let object = Arc::new(make(handle as *mut c_void));
        let mut objects = self.objects.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        objects.get_or_insert_default().insert(handle, Arc::clone(&object));
        object
    }

    /// The object with this handle.
    pub fn get(&self, handle: *mut c_void) -> Option<Arc<T>> {
        let objects = self.objects.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        objects.as_ref()?.get(&(handle as u64)).cloned()
    }

    /// Takes the object out.
    pub fn remove(&self, handle: *mut c_void) -> Option<Arc<T>> {
        let mut objects = self.objects.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        objects.as_mut()?.remove(&(handle as u64))
    }

    /// All objects, in the order of their making.
    pub fn all(&self) -> Vec<Arc<T>> {
        let objects = self.objects.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut all: Vec<_> = objects.iter().flatten().map(|(k, v)| (*k, Arc::clone(v))).collect();
        all.sort_by_key(|(k, _)| *k);
        all.into_iter().map(|(_, v)| v).collect()
    }
}
