//! The functions as a LiteRT calls them that does everything wrong. What the right one does is tried in the wheel:
//! `tests/litert_dispatch`.

#![allow(unsafe_code, reason = "C functions are called as C would")]

use crate::exports::{Api, InterfaceV1, LiteRtDispatchGetApi, LiteRtDispatchQueryInterface};
use crate::runtime::MemoryBuffer;
use nnhal_litert_common::compiled::{ApiVersion, Header, RankedTensorType};
use std::ffi::{CStr, CString, c_int, c_void};
use std::ptr;

const OK: c_int = 0;
const INVALID_ARGUMENT: c_int = 1;
const UNSUPPORTED: c_int = 5;
const INVALID_FLATBUFFER: c_int = 501;
const INDEX_OUT_OF_BOUNDS: c_int = 1000;
const UNSUPPORTED_RUNTIME: c_int = 4000;

const FLOAT32: c_int = 1;
const MODEL: &[u8] = include_bytes!("../../../assets/digits/digits_float32.tflite");

/// A buffer of the LiteRT of these tests.
struct TestBuffer {
    bytes: Vec<u8>,
    /// What its tensor takes.
    packed: usize,
    /// 1: host memory; others are locked.
    kind: c_int,
    locks: c_int,
}

unsafe extern "C" fn create_requirements(
    _count: c_int,
    _kinds: *const c_int,
    size: usize,
    _stride_count: c_int,
    _strides: *const u32,
    made: *mut *mut c_void,
) -> c_int {
    // SAFETY: the library passes a place for a pointer.
    unsafe { *made = ptr::without_provenance_mut(size) };
    OK
}

unsafe extern "C" fn buffer_size(buffer: *mut TestBuffer, size: *mut usize) -> c_int {
    // SAFETY: the library passes the buffers of these tests.
    unsafe { *size = (*buffer).bytes.len() };
    OK
}

unsafe extern "C" fn buffer_type(buffer: *mut TestBuffer, kind: *mut c_int) -> c_int {
    // SAFETY: the library passes the buffers of these tests.
    unsafe { *kind = (*buffer).kind };
    OK
}

unsafe extern "C" fn host_memory(buffer: *mut TestBuffer, to: *mut *mut c_void) -> c_int {
    // SAFETY: as above.
    unsafe { *to = (*buffer).bytes.as_mut_ptr().cast() };
    OK
}

unsafe extern "C" fn packed_size(buffer: *mut TestBuffer, size: *mut usize) -> c_int {
    // SAFETY: the library passes the buffers of these tests.
    unsafe { *size = (*buffer).packed };
    OK
}

unsafe extern "C" fn buffer_offset(_buffer: *mut TestBuffer, offset: *mut usize) -> c_int {
    // SAFETY: the library passes a place for a number.
    unsafe { *offset = 0 };
    OK
}

unsafe extern "C" fn lock(buffer: *mut TestBuffer, to: *mut *mut c_void, _mode: c_int) -> c_int {
    // SAFETY: as in `buffer_size`.
    unsafe {
        // As LiteRT: not twice.
        if (*buffer).locks > 0 {
            return 3;
        }
        (*buffer).locks += 1;
        *to = (*buffer).bytes.as_mut_ptr().cast();
    }
    OK
}

unsafe extern "C" fn unlock(buffer: *mut TestBuffer) -> c_int {
    // SAFETY: as in `buffer_size`.
    unsafe { (*buffer).locks -= 1 };
    OK
}

/// The table of functions of a LiteRT.
fn runtime() -> *const c_void {
    let header = Header { size: 408, major: 1, minor: 1, reserved: 0 };
    // SAFETY: 8 bytes, of which any are a number.
    let header: usize = unsafe { std::mem::transmute(header) };
    let mut table = Box::new([0_usize; 51]);
    table[0] = header;
    table[1] = create_requirements as *const () as usize;
    table[23] = buffer_type as *const () as usize;
    table[30] = host_memory as *const () as usize;
    table[25] = buffer_size as *const () as usize;
    table[26] = packed_size as *const () as usize;
    table[27] = buffer_offset as *const () as usize;
    table[28] = lock as *const () as usize;
    table[29] = unlock as *const () as usize;
    ptr::from_ref(Box::leak(table)).cast()
}

type Call1 = extern "C" fn(*mut c_void) -> c_int;
type Attach = extern "C" fn(*mut c_void, c_int, u64) -> c_int;
type Register = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut u64) -> c_int;
type Create = unsafe extern "C" fn(
    *const c_void,
    *mut c_void,
    c_int,
    *const MemoryBuffer,
    *const std::ffi::c_char,
    c_int,
    c_int,
    *mut *mut c_void,
) -> c_int;
type Requirements =
    unsafe extern "C" fn(*mut c_void, c_int, *const RankedTensorType, *mut *mut c_void) -> c_int;
type CreateDevice = unsafe extern "C" fn(*const c_void, *const c_void, *mut *mut c_void) -> c_int;

/// The library's functions, by place.
#[derive(Debug, PartialEq)]
struct Library([usize; 26]);

impl Library {
    fn load() -> Self {
        let mut api = [0_u64; 7];
        api[0] = 56 | 1 << 16;
        // SAFETY: 56 bytes that begin with a header.
        unsafe {
            assert_eq!(LiteRtDispatchGetApi(api.as_mut_ptr().cast::<Api>()), OK);
            assert_eq!(api[1] & 0xFFFF_FFFF, 0, "0.1.0");
            assert_eq!(api[1] >> 32, 1, "0.1.0");
            let functions =
                ptr::with_exposed_provenance::<[usize; 26]>(usize::try_from(api[3]).unwrap());
            Self(*functions)
        }
    }

    /// As LiteRT 2.4 asks for them, with their header.
    fn asked() -> (Header, Self) {
        let (mut table, version) = (ptr::null(), ApiVersion { major: 1, minor: 0, patch: 0 });
        // SAFETY: a place for a pointer, which then leads to a header and at least as many functions as it says.
        unsafe {
            assert_eq!(LiteRtDispatchQueryInterface(0, version, &raw mut table), OK);
            let header = table.cast::<Header>().read();
            assert_eq!(usize::from(header.size), size_of::<InterfaceV1>());
            (header, Self(table.byte_add(size_of::<Header>()).cast::<[usize; 26]>().read()))
        }
    }

    /// The function at a place.
    fn at<F: Copy>(&self, place: usize) -> F {
        assert_eq!(size_of::<F>(), size_of::<usize>());
        // SAFETY: tests name the type that LiteRT's header has at the place.
        unsafe { std::mem::transmute_copy(&self.0[place]) }
    }

    fn device(&self) -> *mut c_void {
        let mut device = ptr::null_mut();
        // SAFETY: a table as LiteRT has it, and a place for a pointer.
        let status = unsafe { self.at::<CreateDevice>(4)(runtime(), ptr::null(), &raw mut device) };
        assert_eq!(status, OK);
        device
    }

    fn partition_of(
        &self,
        device: *mut c_void,
        bytes: &[u8],
        name: &CStr,
        ends: [c_int; 2],
    ) -> Result<*mut c_void, c_int> {
        let buffer = MemoryBuffer {
            descriptor: -1,
            base: bytes.as_ptr().cast(),
            offset: 0,
            size: bytes.len(),
            file_offset: 0,
        };
        let mut made = ptr::null_mut();
        // SAFETY: bytes that outlive what is made of them, a string, and a place for a pointer.
        let status = unsafe {
            self.at::<Create>(10)(
                ptr::null(),
                device,
                2,
                &raw const buffer,
                name.as_ptr(),
                ends[0],
                ends[1],
                &raw mut made,
            )
        };
        if status == OK { Ok(made) } else { Err(status) }
    }

    fn requirements(&self, of: *mut c_void, at: c_int, dims: &[i32]) -> Result<usize, c_int> {
        let mut kind = RankedTensorType {
            element_type: FLOAT32,
            rank: u32::try_from(dims.len()).unwrap(),
            ..RankedTensorType::EMPTY
        };
        kind.dimensions[..dims.len()].copy_from_slice(dims);
        let mut made = ptr::null_mut();
        // SAFETY: a type, and a place for a pointer.
        let status = unsafe { self.at::<Requirements>(6)(of, at, &raw const kind, &raw mut made) };
        if status == OK { Ok(made.addr()) } else { Err(status) }
    }

    fn register(&self, device: *mut c_void, buffer: &mut TestBuffer) -> u64 {
        let mut number = 0;
        // SAFETY: a buffer of these tests, and a place for a number.
        let status = unsafe {
            self.at::<Register>(8)(device, ptr::from_mut(buffer).cast(), &raw mut number)
        };
        assert_eq!(status, OK);
        number
    }
}

fn buffer(bytes: usize) -> TestBuffer {
    TestBuffer { bytes: vec![0; bytes], packed: bytes, kind: 1, locks: 0 }
}

#[test]
fn a_partition_runs_in_the_buffers_that_it_has() {
    let library = Library::load();
    let device = library.device();
    let partition = library.partition_of(device, MODEL, c"0", [1, 1]).unwrap();
    assert_eq!(library.requirements(partition, 0, &[1, 8, 8, 1]), Ok(256));
    let invoke: Call1 = library.at(17);
    let (attach_input, attach_output): (Attach, Attach) = (library.at(13), library.at(14));
    // Without buffers; with one that is not there; with one that is too small.
    assert_eq!(invoke(partition), INVALID_ARGUMENT);
    assert_eq!(attach_input(partition, 0, 77), INVALID_ARGUMENT);
    let (mut input, mut output, mut small) = (buffer(256), buffer(40), buffer(255));
    small.packed = 256;
    let numbers = [&mut input, &mut output, &mut small].map(|it| library.register(device, it));
    assert_eq!(attach_input(partition, 1, numbers[0]), INDEX_OUT_OF_BOUNDS);
    assert_eq!(attach_input(partition, -1, numbers[0]), INDEX_OUT_OF_BOUNDS);
    assert_eq!(attach_input(partition, 0, numbers[2]), OK);
    assert_eq!(attach_output(partition, 0, numbers[1]), OK);
    assert_eq!(invoke(partition), INVALID_ARGUMENT);
    assert_eq!((output.locks, small.locks), (0, 0), "nothing stays locked after an error");
    assert_eq!(attach_input(partition, 0, numbers[0]), OK);
    // For a tensor of another shape.
    input.packed = 128;
    assert_eq!(invoke(partition), INVALID_ARGUMENT);
    input.packed = 256;
    assert_eq!(invoke(partition), OK);
    // Memory of another type is locked for the run.
    output.kind = 4;
    output.locks = 1;
    assert_eq!(invoke(partition), 3, "somebody else has locked it");
    output.locks = 0;
    assert_eq!(invoke(partition), OK);
    let probabilities =
        output.bytes.chunks_exact(4).map(|it| f32::from_ne_bytes(it.try_into().unwrap()));
    assert!((probabilities.sum::<f32>() - 1.0).abs() < 1e-5);
    assert_eq!((input.locks, output.locks), (0, 0));
    // A buffer that is not registered any more; a partition without one; and one that is gone.
    let unregister: extern "C" fn(*mut c_void, u64) -> c_int = library.at(9);
    assert_eq!(unregister(device, numbers[0]), OK);
    assert_eq!(unregister(device, numbers[0]), INVALID_ARGUMENT);
    assert_eq!(invoke(partition), INVALID_ARGUMENT);
    let detach: Attach = library.at(16);
    assert_eq!(detach(partition, 0, numbers[1]), OK);
    let destroy: Call1 = library.at(11);
    assert_eq!(destroy(partition), OK);
    assert_eq!(destroy(partition), INVALID_ARGUMENT);
    assert_eq!(invoke(partition), INVALID_ARGUMENT);
    assert_eq!(library.requirements(partition, 0, &[1, 8, 8, 1]), Err(INVALID_ARGUMENT));
}

#[test]
fn the_device_context_may_go_before_its_partitions() {
    let library = Library::load();
    let device = library.device();
    let partition = library.partition_of(device, MODEL, c"0", [1, 1]).unwrap();
    let destroy: Call1 = library.at(5);
    assert_eq!(destroy(device), OK);
    assert_eq!(destroy(device), INVALID_ARGUMENT);
    assert_eq!(library.partition_of(device, MODEL, c"0", [1, 1]), Err(INVALID_ARGUMENT));
    assert_eq!(library.at::<Call1>(17)(partition), INVALID_ARGUMENT, "it has no buffers");
    assert_eq!(library.at::<Call1>(11)(partition), OK);
}

#[test]
fn other_shapes_than_those_it_was_compiled_for_are_refused() {
    let library = Library::load();
    let partition = library.partition_of(library.device(), MODEL, c"0", [1, 1]).unwrap();
    for dims in [&[2, 8, 8, 1][..], &[8, 8, 1], &[-1, 8, 8, 1], &[]] {
        assert_eq!(library.requirements(partition, 0, dims), Err(UNSUPPORTED), "{dims:?}");
    }
    assert_eq!(library.requirements(partition, 3, &[1, 8, 8, 1]), Err(INDEX_OUT_OF_BOUNDS));
}

#[test]
fn hostile_byte_code_is_a_status() {
    let library = Library::load();
    let device = library.device();
    for (bytes, name, ends, expected) in [
        (&b""[..], c"0", [1, 1], 3),
        (b"no model at all", c"0", [1, 1], INVALID_FLATBUFFER),
        (&MODEL[..MODEL.len() / 2], c"0", [1, 1], INVALID_FLATBUFFER),
        (MODEL, c"1", [1, 1], INVALID_FLATBUFFER),
        (MODEL, c"partition", [1, 1], INVALID_ARGUMENT),
        (MODEL, c"99999999999999999999999", [1, 1], INVALID_ARGUMENT),
        (MODEL, c"0", [2, 1], INVALID_ARGUMENT),
        (MODEL, c"0", [1, 0], INVALID_ARGUMENT),
        (MODEL, c"0", [-1, 1], INVALID_ARGUMENT),
    ] {
        let outcome = library.partition_of(device, bytes, name, ends);
        assert_eq!(outcome, Err(expected), "{} bytes, {name:?}, {ends:?}", bytes.len());
    }
    let long = CString::new(vec![b'0'; 100]).unwrap();
    assert_eq!(library.partition_of(device, MODEL, &long, [1, 1]), Err(INVALID_ARGUMENT));
}

#[test]
fn a_litert_of_another_age_is_refused() {
    for header in [[55, 1], [56, 2], [8, 1], [0, 0]] {
        let mut api = [0_u64; 7];
        api[0] = header[0] | header[1] << 16;
        // SAFETY: 56 bytes that begin with a header.
        let status = unsafe { LiteRtDispatchGetApi(api.as_mut_ptr().cast::<Api>()) };
        assert_eq!(status, UNSUPPORTED_RUNTIME);
        assert_eq!(api[3], 0);
    }
    // SAFETY: null is one of the things that it takes.
    assert_eq!(unsafe { LiteRtDispatchGetApi(ptr::null_mut()) }, INVALID_ARGUMENT);
    let library = Library::load();
    let mut device = ptr::null_mut();
    let short = Header { size: 100, major: 1, minor: 0, reserved: 0 };
    // SAFETY: a header, and a place for a pointer.
    let status = unsafe {
        library.at::<CreateDevice>(4)((&raw const short).cast(), ptr::null(), &raw mut device)
    };
    assert_eq!((status, device.is_null()), (UNSUPPORTED_RUNTIME, true));
    let check: extern "C" fn(ApiVersion, *const c_void, *const c_void) -> c_int = library.at(23);
    let version = |minor| ApiVersion { major: 0, minor, patch: 0 };
    assert_eq!(check(version(1), ptr::null(), ptr::null()), OK);
    assert_eq!(check(version(2), ptr::null(), ptr::null()), UNSUPPORTED_RUNTIME);
}

#[test]
fn litert_2_4_gets_the_same_functions() {
    let (header, asked) = Library::asked();
    assert_eq!(header, Header { size: 216, major: 1, minor: 0, reserved: 0 });
    assert_eq!(asked, Library::load());
    assert!(asked.0.iter().all(|function| *function != 0));
    let query = |number, major| {
        let mut table = ptr::without_provenance(1);
        let version = ApiVersion { major, minor: 0, patch: 0 };
        // SAFETY: a place for a pointer.
        let status = unsafe { LiteRtDispatchQueryInterface(number, version, &raw mut table) };
        (status, table.addr())
    };
    // Events, graphs and buffers of its own; what there may be later; and LiteRTs of other ages.
    for (number, major) in [(1, 1), (2, 1), (3, 1), (4, 1), (-1, 1), (0, 0), (0, 2), (0, -1)] {
        assert_eq!(query(number, major), (UNSUPPORTED, 1));
    }
    let version = ApiVersion { major: 1, minor: 0, patch: 0 };
    // SAFETY: null is one of the things that it takes.
    let status = unsafe { LiteRtDispatchQueryInterface(0, version, ptr::null_mut()) };
    assert_eq!(status, INVALID_ARGUMENT);
}

#[test]
fn two_partitions_run_on_threads() {
    let library = Library::load();
    let device = library.device().addr();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let device = ptr::without_provenance_mut(device);
                let partition = library.partition_of(device, MODEL, c"0", [1, 1]).unwrap();
                let (mut input, mut output) = (buffer(256), buffer(40));
                let numbers = [&mut input, &mut output].map(|it| library.register(device, it));
                assert_eq!(library.at::<Attach>(13)(partition, 0, numbers[0]), OK);
                assert_eq!(library.at::<Attach>(14)(partition, 0, numbers[1]), OK);
                for _ in 0..50 {
                    assert_eq!(library.at::<Call1>(17)(partition), OK);
                }
                assert_eq!(library.at::<Call1>(11)(partition), OK);
            });
        }
    });
}
