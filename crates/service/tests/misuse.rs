//! Clients that are many, hold too much, send nonsense, or read nothing.

mod common;

use common::{descriptors, execute, prepare, request, server, sum, threads, unsealed, within};
use nnhal_aidl::interface::common::{Ashmem::Ashmem, MappableFile::MappableFile};
use nnhal_aidl::interface::nn::Memory::Memory as WireMemory;
use nnhal_aidl::interface::nn::Model::Model as WireModel;
use nnhal_aidl::socket::Lines;
use nnhal_hal::client::ClientLimits;
use nnhal_hal::{
    BufferDescription, BufferRole, Device, ErrorStatus, HalVersion, Memory, PrepareOptions,
    RequestMemoryPool,
};
use nnhal_service::Settings;
use rsbinder::ParcelFileDescriptor;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Descriptors and threads are the process's, so one at a time.
static ALONE: Mutex<()> = Mutex::new(());

fn serves(path: &Path) {
    let device = nnhal_aidl::socket::open(path, None).expect("the service");
    let prepared = prepare(&*device).unwrap();
    assert_eq!(execute(&*prepared, &request()).unwrap(), sum());
}

#[test]
fn a_thousand_clients_are_served_and_leave_nothing() {
    let _alone = ALONE.lock();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let server = server(&path, Settings { connections: 2000, ..Settings::default() });
    serves(&path);
    let before = (descriptors(), threads());
    let lines: Vec<_> = (0..1000).map(|_| Lines::connect(&path).unwrap()).collect();
    for line in &lines {
        assert!(!line.device().unwrap().getVersionString().unwrap().is_empty());
    }
    serves(&path);
    drop(lines);
    let back = || server.clients().list().is_empty() && threads() <= before.1;
    assert!(within(Duration::from_secs(10), back), "{} threads", threads());
    assert!(within(Duration::from_secs(5), || descriptors() <= before.0));
}

#[test]
fn limits_are_errors_that_say_so() {
    let _alone = ALONE.lock();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let settings = Settings {
        connections: 2,
        client: ClientLimits {
            bursts: 1,
            prepared_models: 2,
            reusable_executions: 1,
            ..Settings::default().client
        },
        ..Settings::default()
    };
    let server = server(&path, settings);
    let device = nnhal_aidl::socket::open(&path, None).unwrap();
    let first = prepare(&*device).unwrap();
    let second = prepare(&*device).unwrap();
    let refused = prepare(&*device).err().unwrap();
    assert_eq!(refused.status(), ErrorStatus::ResourceExhaustedTransient);
    assert!(refused.to_string().contains("2 prepared models"), "{refused}");
    drop(second);
    assert!(within(Duration::from_secs(1), || prepare(&*device).is_ok()));

    let burst = first.configure_burst().unwrap();
    let refused = first.configure_burst().err().unwrap();
    assert!(refused.to_string().contains("1 bursts"), "{refused}");
    drop(burst);

    // Who has no reusable executions left still executes.
    for _ in 0..3 {
        let (one, other) = (request(), request());
        for _ in 0..3 {
            assert_eq!(execute(&*first, &one).unwrap(), sum());
            assert_eq!(execute(&*first, &other).unwrap(), sum());
        }
    }
    let _more = Lines::connect(&path).unwrap();
    assert!(Lines::connect(&path).is_err(), "the third connection");
    assert_eq!(server.clients().refused(), 1);
}

#[test]
fn descriptors_that_models_and_requests_keep_are_limited() {
    let _alone = ALONE.lock();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let limits = ClientLimits { descriptors: 2, ..Settings::default().client };
    let server = server(&path, Settings { client: limits, ..Settings::default() });
    let device = nnhal_aidl::socket::open(&path, None).unwrap();
    let prepare = |pools: usize| {
        let mut model = common::model();
        model.pools = (0..pools).map(|_| Memory::from_bytes(&[0; 8]).unwrap()).collect();
        device.prepare_model(&model, HalVersion::V1_3, PrepareOptions::default())
    };
    let refused = prepare(3).err().unwrap();
    assert_eq!(refused.status(), ErrorStatus::ResourceExhaustedTransient, "{refused}");
    assert!(refused.to_string().contains("2 descriptors"), "{refused}");
    let held = || server.status().all.descriptors;
    assert!(
        within(Duration::from_secs(1), || held() == 0 && server.status().all.prepared_models == 0)
    );
    let prepared = prepare(2).unwrap();
    // Who may keep no more still executes, again and again, and by a burst.
    let burst = prepared.configure_burst().unwrap();
    for _ in 0..3 {
        let request = request();
        for _ in 0..3 {
            assert_eq!(execute(&*prepared, &request).unwrap(), sum());
            burst.execute(&request, false).unwrap();
            assert!(held() <= 2, "{}", held());
        }
    }
    drop((burst, prepared));
    assert!(within(Duration::from_secs(1), || held() == 0));
}

#[test]
fn all_clients_together_are_limited() {
    let _alone = ALONE.lock();
    let folder = tempfile::tempdir().unwrap();
    let start = |name: &str, all| {
        let path = folder.path().join(name);
        let server = server(&path, Settings { all, ..Settings::default() });
        (nnhal_aidl::socket::open(&path, None).unwrap(), server)
    };
    let all = Settings::default().all;
    let refused = |error: nnhal_hal::Error, what: &str| {
        assert_eq!(error.status(), ErrorStatus::ResourceExhaustedTransient, "{error}");
        assert!(error.to_string().contains("all clients together have"), "{error}");
        assert!(error.to_string().contains(what), "{error}");
    };

    let (device, _server) = start("executions", ClientLimits { executions: 0, ..all });
    let prepared = prepare(&*device).unwrap();
    refused(execute(&*prepared, &request()).unwrap_err(), "0 executions");

    // Bytes for one buffer are too few for two of them.
    let allocate = |device: &dyn Device| {
        let prepared = prepare(device)?;
        let role = BufferRole { model_index: 0, io_index: 0, frequency: 1.0 };
        device.allocate(&BufferDescription {
            prepared_models: vec![prepared],
            input_roles: vec![role],
            ..BufferDescription::default()
        })
    };
    let (device, server) = start("unlimited", all);
    let one = allocate(&*device).unwrap();
    let memory = server.status().all.memory;
    assert!(memory > 0);
    drop(one);
    let (device, server) = start("memory", ClientLimits { memory: memory * 3 / 2, ..all });
    let one = allocate(&*device).unwrap();
    let error = allocate(&*device).err().unwrap();
    assert_eq!(error.status(), ErrorStatus::ResourceExhaustedTransient, "{error}");
    let limit = format!("limit of {} for all clients together", memory * 3 / 2);
    assert!(error.to_string().contains(&limit), "{error}");
    // What was found, not less than the buffer and its model.
    assert!(error.to_string().contains("more bytes beside"), "{error}");
    assert_eq!(server.status().all.memory, memory);
    drop(one);
    assert!(within(Duration::from_secs(1), || allocate(&*device).is_ok()));
}

#[test]
fn garbage_ends_its_connection_only() {
    let _alone = ALONE.lock();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    // Good and bad are one process here, and so one client.
    let server = server(&path, Settings { connections: 2000, ..Settings::default() });
    serves(&path);
    let before = (descriptors(), threads());
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for length in 0..400_usize {
        let mut socket = UnixStream::connect(&path).unwrap();
        let bytes: Vec<u8> = (0..length * 3)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state.to_le_bytes()[0]
            })
            .collect();
        let _ = socket.write_all(&bytes);
        // Also after a greeting as it should be: version 2, no session, no options.
        if length % 2 == 0 {
            let mut socket = UnixStream::connect(&path).unwrap();
            let mut greeting = vec![0_u8; 16];
            greeting[0] = 2;
            let _ = socket.write_all(&greeting);
            let _ = socket.write_all(&bytes);
        }
    }
    serves(&path);
    let back = || server.clients().list().is_empty() && threads() <= before.1;
    assert!(within(Duration::from_secs(15), back), "{} threads", threads());
    assert!(within(Duration::from_secs(5), || descriptors() <= before.0));
}

#[test]
fn who_says_nothing_is_not_waited_for() {
    let _alone = ALONE.lock();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let io_timeout = Duration::from_millis(300);
    let server = server(&path, Settings { io_timeout, ..Settings::default() });
    let mut silent = UnixStream::connect(&path).unwrap();
    let began = Instant::now();
    serves(&path);
    silent.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let ended = silent.read(&mut [0]);
    assert_eq!(ended.unwrap(), 0, "the service hangs up");
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    assert!(within(Duration::from_secs(1), || server.clients().list().is_empty()));
}

#[test]
fn wrong_descriptors_are_refused() {
    let _alone = ALONE.lock();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let _server = server(&path, Settings::default());
    let lines = Lines::connect(&path).unwrap();
    let device = lines.device().unwrap();
    let (pipe, _other) = std::io::pipe().unwrap();
    let (socket, _peer) = UnixStream::pair().unwrap();
    let kinds: Vec<(&str, ParcelFileDescriptor)> = vec![
        ("a pipe", ParcelFileDescriptor::new(std::os::fd::OwnedFd::from(pipe))),
        ("a socket", ParcelFileDescriptor::new(std::os::fd::OwnedFd::from(socket))),
        ("a folder", ParcelFileDescriptor::new(File::open(folder.path()).unwrap())),
        ("a device", ParcelFileDescriptor::new(File::open("/dev/null").unwrap())),
        ("an empty file", ParcelFileDescriptor::new(tempfile::tempfile().unwrap())),
    ];
    for (what, fd) in kinds {
        let again = fd.try_clone().unwrap();
        let file = MappableFile { length: 8, prot: 3, fd: Some(again), offset: 0 };
        for pool in [
            WireMemory::Ashmem(Ashmem { fd: Some(fd.try_clone().unwrap()), size: 8 }),
            WireMemory::MappableFile(file),
        ] {
            let model = WireModel { pools: vec![pool], ..WireModel::default() };
            let status = device.getSupportedOperations(&model).unwrap_err();
            let code = status.service_specific_error();
            assert_eq!(code, ErrorStatus::InvalidArgument.code(), "{what}: {status:?}");
        }
    }
    serves(&path);
}

#[test]
fn pools_may_shrink_while_they_are_in_use() {
    let _alone = ALONE.lock();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let _server = server(&path, Settings::default());
    let device = nnhal_aidl::socket::open(&path, None).unwrap();
    let prepared = prepare(&*device).unwrap();
    let mut request = request();
    let RequestMemoryPool::Memory(memory) = &request.pools[0] else { panic!("memory") };
    let size = memory.size();
    let bytes = memory.view().unwrap().read_to_vec(0, size).unwrap();
    let (memory, file) = unsealed(&bytes);
    request.pools[0] = RequestMemoryPool::Memory(memory);
    for _ in 0..3 {
        assert_eq!(execute(&*prepared, &request).unwrap(), sum());
    }
    file.set_len(3).unwrap();
    let error = execute(&*prepared, &request).unwrap_err();
    assert_ne!(error.status(), ErrorStatus::DeviceUnavailable, "{error}");
    file.set_len(size).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &bytes, 0).unwrap();
    assert_eq!(execute(&*prepared, &request).unwrap(), sum());
}

/// Another thread writes a request's pool, and cuts it off and makes it longer again, while it is executed.
#[test]
fn pools_may_change_and_shrink_during_executions() {
    let _alone = ALONE.lock();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let server = server(&path, Settings::default());
    let device = nnhal_aidl::socket::open(&path, None).unwrap();
    const LENGTH: u32 = 1 << 20;
    let mut graph = nnhal_hal::SubgraphBuilder::new();
    let input = graph.input("a", nnhal_hal::OperandSpec::tensor_float32([LENGTH]));
    let relu = nnhal_hal::OperationType::Relu;
    let spec = nnhal_hal::OperandSpec::tensor_float32([LENGTH]);
    let output = graph.operation(relu, [input], spec);
    graph.output(output);
    let model = graph.into_model().unwrap();
    let options = PrepareOptions::default();
    let prepared = device.prepare_model(&model, HalVersion::V1_3, options).unwrap();
    let bytes = LENGTH as usize * 4;
    let mut request = nnhal_hal::RequestBuilder::new();
    request.input(&vec![1; bytes]).output(bytes);
    let mut request = request.build().unwrap();
    let RequestMemoryPool::Memory(memory) = &request.pools[0] else { panic!("memory") };
    let size = memory.size();
    let (memory, file) = unsealed(&vec![1; size.try_into().unwrap()]);
    request.pools[0] = RequestMemoryPool::Memory(memory);
    let is_over = std::sync::atomic::AtomicBool::new(false);
    let (good, failed) = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut count = 0_u64;
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                count += 1;
                let place = count.wrapping_mul(0x9e37_79b9_7f4a_7c15) % (size - 64);
                std::os::unix::fs::FileExt::write_all_at(&file, &[0xff; 64], place).unwrap();
                if count.is_multiple_of(16) {
                    file.set_len(place & !4095).unwrap();
                    file.set_len(size).unwrap();
                }
            }
        });
        let burst = prepared.configure_burst().unwrap();
        let (mut good, mut failed) = (0, 0);
        let until = Instant::now() + Duration::from_secs(3);
        while Instant::now() < until {
            let once = execute(&*prepared, &request).map(|_| ());
            let by_burst = burst.execute(&request, false).map(|_| ()).map_err(|it| it.error);
            for outcome in [once, by_burst] {
                match outcome {
                    Ok(()) => good += 1,
                    Err(error) => {
                        assert_ne!(error.status(), ErrorStatus::DeviceUnavailable, "{error}");
                        failed += 1;
                    }
                }
            }
        }
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        (good, failed)
    });
    assert!(failed > 0, "of {good} executions none met the shorter memory");
    // It is the service that the others have.
    serves(&path);
    assert_eq!(server.status().all.running, 0);
}

/// A file system of one page in memory, full, until this is dropped.
struct FullDisk(std::path::PathBuf);

impl FullDisk {
    /// `None` where the process may not mount any.
    fn mount(place: std::path::PathBuf) -> Option<Self> {
        std::fs::create_dir(&place).unwrap();
        let mut mount = std::process::Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=4k", "none"]).arg(&place);
        let mounted = mount.stderr(std::process::Stdio::null()).status();
        mounted.is_ok_and(|status| status.success()).then_some(())?;
        let disk = Self(place);
        File::create(disk.0.join("other")).unwrap().write_all(&[1; 4096]).unwrap();
        let more = File::create(disk.0.join("more")).unwrap().write_all(&[1]);
        assert_eq!(more.unwrap_err().kind(), std::io::ErrorKind::StorageFull);
        Some(disk)
    }
}

impl Drop for FullDisk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn a_cache_on_a_full_disk_is_not_saved_and_does_no_harm() {
    let _alone = ALONE.lock();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let _server = server(&path, Settings::default());
    let device = nnhal_aidl::socket::open(&path, None).unwrap();
    let needed = device.cache_files_needed();
    let disk = FullDisk::mount(folder.path().join("disk"));
    if disk.is_none() {
        common::say("no file system can be mounted: only /dev/full was tried");
    }
    let open = |kind: &str, count: u32, disk: Option<&FullDisk>| {
        let file = |index| match disk {
            None => File::options().read(true).write(true).open("/dev/full").unwrap().into(),
            Some(disk) => {
                let place = disk.0.join(format!("{kind}-{index}"));
                let mut options = File::options();
                options.read(true).write(true).create(true).truncate(false);
                options.open(place).unwrap().into()
            }
        };
        (0..count).map(file).collect()
    };
    for disk in [None, disk.as_ref()] {
        let options = || PrepareOptions {
            model_cache: open("model", needed.model, disk),
            data_cache: open("data", needed.data, disk),
            token: [7; 32],
            ..PrepareOptions::default()
        };
        let prepared = device.prepare_model(&common::model(), HalVersion::V1_3, options()).unwrap();
        assert_eq!(execute(&*prepared, &request()).unwrap(), sum());
        // What was not saved is not loaded.
        let error = device.prepare_model_from_cache(options()).err().unwrap();
        assert_eq!(error.status(), ErrorStatus::GeneralFailure, "{error}");
    }
}

/// A proxy passes everything on until it stops reading: what the service answers then fills the socket's buffer, and a thread
/// of it waits for as long as it may.
#[test]
fn who_reads_nothing_loses_the_connection() {
    let _alone = ALONE.lock();
    let folder = tempfile::tempdir().unwrap();
    let (path, proxied) = (folder.path().join("s"), folder.path().join("proxy"));
    let io_timeout = Duration::from_millis(300);
    let server = server(&path, Settings { io_timeout, ..Settings::default() });
    let listener = std::os::unix::net::UnixListener::bind(&proxied).unwrap();
    let reads = std::sync::atomic::AtomicBool::new(true);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (client, _) = listener.accept().unwrap();
            let service = UnixStream::connect(&path).unwrap();
            let (mut to, mut from) = (service.try_clone().unwrap(), client.try_clone().unwrap());
            let upward = scope.spawn(move || std::io::copy(&mut from, &mut to));
            let (mut from, mut to) = (service.try_clone().unwrap(), client.try_clone().unwrap());
            from.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
            let mut bytes = [0; 4096];
            while reads.load(std::sync::atomic::Ordering::SeqCst) {
                match from.read(&mut bytes) {
                    Ok(0) => break,
                    Ok(length) => to.write_all(&bytes[..length]).unwrap(),
                    Err(_) => {}
                }
            }
            // The service writes into a buffer that no one empties.
            let is_gone = within(Duration::from_secs(20), || server.clients().list().is_empty());
            // The call ends in any case.
            client.shutdown(std::net::Shutdown::Both).unwrap();
            service.shutdown(std::net::Shutdown::Both).unwrap();
            assert!(is_gone, "the service still writes");
            let _ = upward.join();
        });
        let lines = Lines::connect(&proxied).unwrap();
        let device = lines.device().unwrap();
        let long = nnhal_aidl::convert::model_to_wire(&common::long_model(100_000)).unwrap();
        reads.store(false, std::sync::atomic::Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(50));
        device.getSupportedOperations(&long).unwrap_err();
    });
    serves(&path);
}
