//! Memory that clients share with the server: objects of POSIX shared memory, by name.
//!
//! Whoever shares memory can change and shorten it at any time. So it is never mapped here: it is
//! read and written at offsets, each byte once, and an object that has become too short is an error.

use crate::error::{Error, Result};
use crate::parameters::{Parameters, check_name, shortened, text, whole};
use rustix::fs::{Mode, OFlags};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Regions that may be registered at a time; each holds a descriptor.
const MOST_REGIONS: usize = 1024;
/// Where the system keeps objects of POSIX shared memory.
const FOLDER: &str = "/dev/shm";

/// A region as clients registered it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegionStatus {
    /// What requests call it.
    pub name: String,
    /// The name of the object.
    pub key: String,
    /// Where it begins in the object, in bytes.
    pub offset: u64,
    /// Its length in bytes.
    pub byte_size: u64,
}

#[derive(Debug)]
struct Region {
    status: RegionStatus,
    file: File,
}

/// A part of a region. The region stays open for as long as a request has one.
#[derive(Debug, Clone)]
pub struct Slice {
    region: Arc<Region>,
    offset: u64,
    length: usize,
}

/// All regions.
#[derive(Debug)]
pub(crate) struct SharedMemory {
    is_offered: bool,
    regions: Mutex<BTreeMap<String, Arc<Region>>>,
}

impl SharedMemory {
    pub(crate) fn new(is_offered: bool) -> Self {
        Self { is_offered, regions: Mutex::default() }
    }

    pub(crate) fn is_offered(&self) -> bool {
        self.is_offered
    }

    fn lock(&self) -> Result<MutexGuard<'_, BTreeMap<String, Arc<Region>>>> {
        if !self.is_offered {
            let why =
                "shared memory is not offered: the server was started without --shared-memory";
            return Err(Error::Forbidden(why));
        }
        Ok(self.regions.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether there is any.
    ///
    /// # Errors
    /// [`Error::Forbidden`]: it is not offered.
    pub(crate) fn check_allowed(&self) -> Result<()> {
        self.lock().map(drop)
    }

    /// Opens an object under a name.
    ///
    /// # Errors
    /// [`Error::Forbidden`], [`Error::Invalid`]: there is a region of that name, no such object, or it is
    /// shorter.
    pub(crate) fn register(&self, status: RegionStatus) -> Result<()> {
        let mut regions = self.lock()?;
        check_name("a name", &status.name)?;
        let RegionStatus { name, key, offset, byte_size } = &status;
        let refused = |why: String| {
            Err(Error::invalid(format!("shared-memory region {:?}: {why}", shortened(name))))
        };
        if regions.contains_key(name) {
            return refused("there is one of that name already".into());
        }
        if regions.len() >= MOST_REGIONS {
            return refused(format!("there are {MOST_REGIONS} regions already"));
        }
        let end = offset.checked_add(*byte_size).filter(|end| i64::try_from(*end).is_ok());
        let (Some(end), 1..) = (end, *byte_size) else {
            return refused(format!("{byte_size} bytes from {offset} on cannot be"));
        };
        let file = match open(key) {
            Ok(file) => file,
            Err(why) => return refused(format!("object {:?}: {why}", shortened(key))),
        };
        let found = file.metadata().map_or(0, |metadata| metadata.len());
        if found < end {
            return refused(format!("the object has {found} bytes, expected {end} or more"));
        }
        regions.insert(name.clone(), Arc::new(Region { status, file }));
        Ok(())
    }

    /// Lets go of a region, or of all. One that is not there is no error, as in Triton.
    pub(crate) fn unregister(&self, name: Option<&str>) -> Result<()> {
        let mut regions = self.lock()?;
        match name {
            Some(name) => drop(regions.remove(name)),
            None => regions.clear(),
        }
        Ok(())
    }

    /// One region, or all.
    pub(crate) fn status(&self, name: Option<&str>) -> Result<Vec<RegionStatus>> {
        let regions = self.lock()?;
        match name {
            None => Ok(regions.values().map(|region| region.status.clone()).collect()),
            Some(name) => {
                let region = regions.get(name).ok_or_else(|| not_found(name))?;
                Ok(vec![region.status.clone()])
            }
        }
    }

    /// The memory that a tensor's parameters name, if they name any.
    pub(crate) fn slice(&self, parameters: &Parameters) -> Result<Option<Slice>> {
        let region = text(parameters, "shared_memory_region")?;
        let length = whole(parameters, "shared_memory_byte_size")?;
        let offset = whole(parameters, "shared_memory_offset")?.unwrap_or(0);
        let (region, length) = match (region, length) {
            (Some(region), Some(length)) => (region, length),
            (None, None) => return Ok(None),
            _ => {
                let why = "shared_memory_region and shared_memory_byte_size go together";
                return Err(Error::invalid(why));
            }
        };
        let found = self.lock()?.get(region).cloned().ok_or_else(|| not_found(region))?;
        let fits = offset.checked_add(length).is_some_and(|end| end <= found.status.byte_size);
        match usize::try_from(length) {
            Ok(length) if fits => Ok(Some(Slice { region: found, offset, length })),
            _ => Err(Error::invalid(format!(
                "shared-memory region {:?} has {} bytes, {length} from {offset} on are asked for",
                shortened(region),
                found.status.byte_size
            ))),
        }
    }
}

fn not_found(name: &str) -> Error {
    Error::NotFound { what: "shared-memory region", name: shortened(name).to_owned() }
}

/// Opens the object of this name, as `shm_open` would.
fn open(key: &str) -> std::result::Result<File, String> {
    let name = key.strip_prefix('/').unwrap_or(key);
    if name.is_empty() || name.len() > 255 || name.contains(['/', '\0']) || name.starts_with('.') {
        return Err("this is no name of an object".into());
    }
    // Not blocking: what has the name may be a pipe.
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let opened = rustix::fs::open(format!("{FOLDER}/{name}"), flags, Mode::empty());
    let file = File::from(opened.map_err(|error| error.to_string())?);
    let is_file = file.metadata().is_ok_and(|metadata| metadata.is_file());
    if is_file { Ok(file) } else { Err("it is no object of shared memory".into()) }
}

impl Slice {
    /// Bytes that it has.
    pub fn length(&self) -> usize {
        self.length
    }

    /// The region's name.
    pub fn region(&self) -> &str {
        &self.region.status.name
    }

    /// Where it begins in the region, in bytes.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    fn failed(&self, error: &std::io::Error) -> Error {
        Error::invalid(format!("shared-memory region {:?}: {error}", self.region.status.name))
    }

    /// Copies bytes out of it, from `from` on.
    pub(crate) fn read(&self, from: usize, bytes: &mut [u8]) -> Result<()> {
        // All three were added when the slice was made.
        let at = self.region.status.offset + self.offset + from as u64;
        self.region.file.read_exact_at(bytes, at).map_err(|error| self.failed(&error))
    }

    /// Copies bytes to its beginning.
    pub(crate) fn write(&self, bytes: &[u8]) -> Result<()> {
        if bytes.len() > self.length {
            return Err(Error::invalid(format!(
                "shared-memory region {:?}: room for {} bytes, the output has {}",
                self.region.status.name,
                self.length,
                bytes.len()
            )));
        }
        let at = self.region.status.offset + self.offset;
        // What is beyond the end of an object that was shortened would make it longer again.
        let end = at + bytes.len() as u64;
        if self.region.file.metadata().map_or(0, |metadata| metadata.len()) < end {
            let why = std::io::Error::other("the object has become shorter");
            return Err(self.failed(&why));
        }
        self.region.file.write_all_at(bytes, at).map_err(|error| self.failed(&error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::Parameter;

    /// An object that is removed at the end.
    struct Object(String);

    impl Object {
        fn new(name: &str, bytes: &[u8]) -> Self {
            let name = format!("nnhal-test-{}-{name}", std::process::id());
            std::fs::write(format!("{FOLDER}/{name}"), bytes).unwrap();
            Self(name)
        }
    }

    impl Drop for Object {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(format!("{FOLDER}/{}", self.0));
        }
    }

    fn status(name: &str, key: &str, offset: u64, byte_size: u64) -> RegionStatus {
        RegionStatus { name: name.into(), key: key.into(), offset, byte_size }
    }

    fn place(region: &str, offset: i128, size: i128) -> Parameters {
        let integer = |name: &str, value| (name.to_owned(), Parameter::Integer(value));
        let region = ("shared_memory_region".to_owned(), Parameter::Text(region.to_owned()));
        let sizes = [("shared_memory_offset", offset), ("shared_memory_byte_size", size)];
        sizes.map(|(name, value)| integer(name, value)).into_iter().chain([region]).collect()
    }

    #[test]
    fn a_slice_reads_and_writes_its_own_bytes_only() {
        let object = Object::new("own", &(0..=99).collect::<Vec<u8>>());
        let memory = SharedMemory::new(true);
        memory.register(status("r", &format!("/{}", object.0), 10, 80)).unwrap();
        let slice = memory.slice(&place("r", 5, 4)).unwrap().unwrap();
        let mut bytes = [0; 4];
        slice.read(0, &mut bytes).unwrap();
        assert_eq!(bytes, [15, 16, 17, 18]);
        slice.write(&[1, 2]).unwrap();
        assert!(slice.write(&[0; 5]).is_err());
        let file = std::fs::read(format!("{FOLDER}/{}", object.0)).unwrap();
        assert_eq!(file[14..19], [14, 1, 2, 17, 18]);
    }

    #[test]
    fn sec_places_outside_of_a_region_are_refused() {
        let object = Object::new("outside", &[0; 100]);
        let memory = SharedMemory::new(true);
        memory.register(status("r", &object.0, 0, 100)).unwrap();
        for (offset, size) in [(0, 101), (100, 1), (i128::from(u64::MAX), 2), (-1, 5), (0, -1)] {
            assert!(memory.slice(&place("r", offset, size)).is_err(), "{offset} {size}");
        }
        assert!(memory.slice(&place("other", 0, 1)).is_err());
        for (offset, size) in [(0, 101), (1, 100), (u64::MAX, 2), (0, 0)] {
            assert!(memory.register(status("s", &object.0, offset, size)).is_err());
        }
    }

    #[test]
    fn sec_names_lead_nowhere_but_to_objects() {
        let memory = SharedMemory::new(true);
        for key in ["", "/", "..", "../etc/passwd", "/../../etc/passwd", "a/b", "\0", ".x", "none"]
        {
            assert!(memory.register(status("r", key, 0, 1)).is_err(), "{key:?}");
        }
    }

    #[test]
    fn sec_an_object_that_shrinks_is_an_error() {
        let object = Object::new("shrinks", &[7; 100]);
        let memory = SharedMemory::new(true);
        memory.register(status("r", &object.0, 0, 100)).unwrap();
        let slice = memory.slice(&place("r", 50, 10)).unwrap().unwrap();
        std::fs::write(format!("{FOLDER}/{}", object.0), [0; 10]).unwrap();
        assert!(slice.read(0, &mut [0; 10]).is_err());
        assert!(slice.write(&[0; 10]).is_err());
    }

    #[test]
    fn without_the_flag_nothing_is_shared() {
        let memory = SharedMemory::new(false);
        assert!(matches!(memory.register(status("r", "x", 0, 1)), Err(Error::Forbidden(_))));
        assert!(matches!(memory.slice(&place("r", 0, 1)), Err(Error::Forbidden(_))));
    }
}
