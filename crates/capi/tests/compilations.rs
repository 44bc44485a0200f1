//! Devices and compilations: what they say, and what each misuse answers.

mod c;

use c::*;
use std::ptr::{null, null_mut, without_provenance_mut};

#[test]
fn devices_say_what_they_are() {
    let mut count = 0;
    works(ANeuralNetworks_getDeviceCount(&raw mut count));
    let mut names = Vec::new();
    for index in 0..count {
        let device = made(|device| ANeuralNetworks_getDevice(index, device));
        assert_eq!(device, made(|device| ANeuralNetworks_getDevice(index, device)), "no other");
        let (mut name, mut version, mut kind, mut level) = (null(), null(), -1, 0);
        works(ANeuralNetworksDevice_getName(device, &raw mut name));
        works(ANeuralNetworksDevice_getVersion(device, &raw mut version));
        works(ANeuralNetworksDevice_getType(device, &raw mut kind));
        works(ANeuralNetworksDevice_getFeatureLevel(device, &raw mut level));
        works(ANeuralNetworksDevice_wait(device));
        names.push(text(name));
        assert!(!text(version).is_empty());
        assert_eq!(kind, 2, "a CPU");
        assert_eq!(level, ANeuralNetworks_getRuntimeFeatureLevel());
    }
    // The last is the first by the name of Android's CPU device.
    assert_eq!(names, ["nnhal-cpu", "nnhal-reference", "nnapi-reference"]);
    let mut device = null_mut();
    assert_eq!(ANeuralNetworks_getDevice(count, &raw mut device), BAD_DATA);
    assert_eq!(ANeuralNetworks_getDevice(0, null_mut()), UNEXPECTED_NULL);
    assert_eq!(ANeuralNetworks_getDeviceCount(null_mut()), UNEXPECTED_NULL);
    assert_eq!(ANeuralNetworksDevice_getName(c::device(), null_mut()), UNEXPECTED_NULL);
    assert_eq!(ANeuralNetworks_getRuntimeFeatureLevel(), 1_000_008);
    assert_eq!(ANeuralNetworks_getDefaultLoopTimeout(), 2_000_000_000);
    assert_eq!(ANeuralNetworks_getMaximumLoopTimeout(), 15_000_000_000);
}

#[test]
fn lists_of_devices_are_checked() {
    let model = model();
    let device = device();
    let ask = |devices: *const Handle, count| {
        let (mut compilation, mut supported) = (null_mut(), [false; 1]);
        let create = ANeuralNetworksCompilation_createForDevices;
        let created = create(model, devices, count, &raw mut compilation);
        let asked = ANeuralNetworksModel_getSupportedOperationsForDevices(
            model,
            devices,
            count,
            supported.as_mut_ptr(),
        );
        assert_eq!(created, asked, "both ask alike");
        ANeuralNetworksCompilation_free(compilation);
        (created, supported[0])
    };
    assert_eq!(ask([device].as_ptr(), 1), (NO_ERROR, true));
    assert_eq!(ask([device].as_ptr(), 0).0, BAD_DATA);
    assert_eq!(ask(null(), 1).0, UNEXPECTED_NULL);
    assert_eq!(ask([device, null_mut()].as_ptr(), 2).0, UNEXPECTED_NULL);
    assert_eq!(ask([device, device].as_ptr(), 2).0, BAD_DATA);
    assert_eq!(ask([device, null_mut(), device].as_ptr(), 3).0, BAD_DATA);
    // A program that takes every device there is names one of them twice.
    let all = [0, 1, 2].map(|index| made(|it| ANeuralNetworks_getDevice(index, it)));
    assert_eq!(ask(all.as_ptr(), 3), (NO_ERROR, true));
    assert_eq!(ask([without_provenance_mut(64)].as_ptr(), 1).0, BAD_DATA);
    let unfinished = unfinished_model(&[2]);
    let ask = ANeuralNetworksModel_getSupportedOperationsForDevices;
    for (devices, count, code) in [
        ([device, device], 1, BAD_STATE),
        ([device, device], 2, BAD_STATE),
        ([device, null_mut()], 2, BAD_STATE),
        ([device, device], 0, BAD_DATA),
    ] {
        assert_eq!(ask(unfinished, devices.as_ptr(), count, [false].as_mut_ptr()), code);
    }
    assert_eq!(ask(model, [device].as_ptr(), 1, null_mut()), UNEXPECTED_NULL);
    ANeuralNetworksModel_free(unfinished);
    ANeuralNetworksModel_free(model);
}

#[test]
fn options_are_checked() {
    let model = model();
    let compilation = unfinished_compilation(model);
    for preference in 0..3 {
        works(ANeuralNetworksCompilation_setPreference(compilation, preference));
    }
    for preference in [-1, 3, i32::MAX] {
        let code = ANeuralNetworksCompilation_setPreference(compilation, preference);
        assert_eq!(code, BAD_DATA, "{preference}");
    }
    for priority in [90, 100, 110] {
        works(ANeuralNetworksCompilation_setPriority(compilation, priority));
    }
    for priority in [0, 89, 91, 111, -1] {
        let code = ANeuralNetworksCompilation_setPriority(compilation, priority);
        assert_eq!(code, BAD_DATA, "{priority}");
    }
    works(ANeuralNetworksCompilation_setTimeout(compilation, 1_000_000_000_000));
    works(ANeuralNetworksCompilation_setTimeout(compilation, 0));
    let token = [1; 32];
    let cache = ANeuralNetworksCompilation_setCaching;
    assert_eq!(cache(compilation, null(), token.as_ptr()), UNEXPECTED_NULL);
    assert_eq!(cache(compilation, c"/tmp".as_ptr(), null()), UNEXPECTED_NULL);
    ANeuralNetworksCompilation_free(compilation);

    let for_all = made(|it| ANeuralNetworksCompilation_create(model, it));
    assert_eq!(
        ANeuralNetworksCompilation_setTimeout(for_all, 1),
        BAD_DATA,
        "not one chosen device"
    );
    ANeuralNetworksCompilation_free(for_all);
    ANeuralNetworksModel_free(model);
}

/// The name of Android's CPU device counts like one more.
#[test]
fn two_names_of_one_device_are_not_one_device() {
    let model = model();
    let names = [0, 2].map(|index| made(|it| ANeuralNetworks_getDevice(index, it)));
    let create = ANeuralNetworksCompilation_createForDevices;
    for (names, code) in [(&names[..1], NO_ERROR), (&names[1..], NO_ERROR), (&names, BAD_DATA)] {
        let count = u32::try_from(names.len()).unwrap();
        let compilation = made(|it| create(model, names.as_ptr(), count, it));
        assert_eq!(ANeuralNetworksCompilation_setTimeout(compilation, 1_000_000_000_000), code);
        works(ANeuralNetworksCompilation_finish(compilation));
        let execution = execution(compilation);
        assert_eq!(ANeuralNetworksExecution_setMeasureTiming(execution, true), code);
        assert_eq!(ANeuralNetworksExecution_setTimeout(execution, 1_000_000_000_000), code);
        ANeuralNetworksExecution_free(execution);
        ANeuralNetworksCompilation_free(compilation);
    }
    ANeuralNetworksModel_free(model);
}

#[test]
fn an_attribute_is_for_one_device_and_given_once() {
    let model = model();
    let compilation = unfinished_compilation(model);
    let add = ANeuralNetworksCompilation_addExtensionAttribute;
    let (name, value) = (name("com.example.attributes"), [1_u8]);
    let value = value.as_ptr().cast();
    assert_eq!(add(compilation, null(), 1, value, 1), UNEXPECTED_NULL);
    assert_eq!(add(compilation, name.as_ptr(), 1, null(), 1), UNEXPECTED_NULL);
    works(add(compilation, name.as_ptr(), 1, value, 1));
    assert_eq!(add(compilation, name.as_ptr(), 1, value, 1), BAD_DATA);
    works(add(compilation, name.as_ptr(), 2, value, 1));
    works(add(compilation, name.as_ptr(), 3, null(), 0));
    let for_all = made(|it| ANeuralNetworksCompilation_create(model, it));
    assert_eq!(add(for_all, name.as_ptr(), 1, value, 1), BAD_DATA);
    ANeuralNetworksCompilation_free(for_all);
    ANeuralNetworksCompilation_free(compilation);
    ANeuralNetworksModel_free(model);
}

#[test]
fn a_finished_compilation_does_not_change() {
    let model = model();
    let compilation = compilation(model);
    let name = name("com.example.attributes");
    let calls = [
        ANeuralNetworksCompilation_finish(compilation),
        ANeuralNetworksCompilation_setPreference(compilation, 0),
        ANeuralNetworksCompilation_setPreference(compilation, 77),
        ANeuralNetworksCompilation_setPriority(compilation, 90),
        ANeuralNetworksCompilation_setTimeout(compilation, 1),
        ANeuralNetworksCompilation_setCaching(compilation, c"/tmp".as_ptr(), [0; 32].as_ptr()),
        ANeuralNetworksCompilation_addExtensionAttribute(
            compilation,
            name.as_ptr(),
            1,
            [1_u8].as_ptr().cast(),
            1,
        ),
    ];
    for (index, code) in calls.into_iter().enumerate() {
        assert_eq!(code, BAD_STATE, "call {index}");
    }
    ANeuralNetworksCompilation_free(compilation);
    ANeuralNetworksModel_free(model);
}

#[test]
fn an_unfinished_compilation_makes_nothing() {
    let model = model();
    let compilation = unfinished_compilation(model);
    let (mut made, mut number) = (null_mut(), 0);
    assert_eq!(ANeuralNetworksExecution_create(compilation, &raw mut made), BAD_STATE);
    assert_eq!(ANeuralNetworksBurst_create(compilation, &raw mut made), BAD_STATE);
    let ask = ANeuralNetworksCompilation_getPreferredMemoryAlignmentForInput;
    assert_eq!(ask(compilation, 0, &raw mut number), BAD_STATE);
    let description = c::made(|it| ANeuralNetworksMemoryDesc_create(it));
    let add = ANeuralNetworksMemoryDesc_addInputRole;
    assert_eq!(add(description, compilation, 0, 1.0), BAD_DATA, "the description's state is right");
    ANeuralNetworksMemoryDesc_free(description);
    ANeuralNetworksCompilation_free(compilation);
    ANeuralNetworksModel_free(model);
}

#[test]
fn preferred_memory_is_notified_for_each_argument() {
    let model = model();
    let compilation = compilation(model);
    for ask in [
        ANeuralNetworksCompilation_getPreferredMemoryAlignmentForInput,
        ANeuralNetworksCompilation_getPreferredMemoryPaddingForInput,
        ANeuralNetworksCompilation_getPreferredMemoryAlignmentForOutput,
        ANeuralNetworksCompilation_getPreferredMemoryPaddingForOutput,
    ] {
        let ask = |index, answer| ask(compilation, index, answer);
        let mut answer = 0_u32;
        works(ask(0, &raw mut answer));
        assert!(answer.is_power_of_two(), "{answer}");
        assert_eq!(ask(1, &raw mut answer), BAD_DATA);
        assert_eq!(ask(0, null_mut()), UNEXPECTED_NULL);
    }
    ANeuralNetworksCompilation_free(compilation);
    ANeuralNetworksModel_free(model);
}

/// contract: CAPI-3
#[test]
fn capi_3_a_cached_compilation_is_files_with_letters_for_names() {
    let folder = tempfile::tempdir().unwrap();
    let path = name(folder.path().to_str().unwrap());
    let model = model();
    let compile = |token: [u8; 32]| {
        let compilation = unfinished_compilation(model);
        works(ANeuralNetworksCompilation_setCaching(compilation, path.as_ptr(), token.as_ptr()));
        works(ANeuralNetworksCompilation_finish(compilation));
        let (x, mut y) = ([1.0, 2.0], [0.0; 2]);
        let execution = ready_execution(compilation, &x, &mut y);
        works(ANeuralNetworksExecution_compute(execution));
        assert_eq!(y, [11.0, 22.0]);
        ANeuralNetworksExecution_free(execution);
        ANeuralNetworksCompilation_free(compilation);
    };
    let files = || -> Vec<(String, Vec<u8>)> {
        let entries = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap());
        let mut files: Vec<_> = entries
            .map(|entry| {
                let content = std::fs::read(entry.path()).unwrap();
                (entry.file_name().into_string().unwrap(), content)
            })
            .collect();
        files.sort();
        files
    };
    compile([1; 32]);
    let first = files();
    assert!(!first.is_empty(), "the device caches");
    for (index, (name, content)) in first.iter().enumerate() {
        let (letters, rest) = name.split_at(64);
        assert!(letters.bytes().all(|letter| (b'A'..=b'P').contains(&letter)), "{name}");
        assert_eq!(rest, format!("1{index}"), "model cache file number {index}");
        assert!(!content.is_empty());
    }
    // From the cache: nothing is written.
    compile([1; 32]);
    assert_eq!(files(), first);
    // Another token, another file.
    compile([2; 32]);
    assert_eq!(files().len(), 2 * first.len());
    // Files that are spoilt are not used, but written anew.
    for (name, content) in &first {
        let mut spoilt = content.clone();
        spoilt[content.len() / 2] ^= 1;
        std::fs::write(folder.path().join(name), spoilt).unwrap();
    }
    compile([1; 32]);
    assert!(files().iter().all(|(_, content)| !content.is_empty()));
    compile([1; 32]);
    ANeuralNetworksModel_free(model);
}
