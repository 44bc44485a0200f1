//! The requirements that no check of any device can look at, each with the reason.

/// Requirement and reason, in the contract's order. Whatever the contract demands is either here or
/// among the ids of a [`Check`](super::Check).
pub const NOT_CHECKED: &[(&str, &str)] = &[
    ("GEN-1", "It permits two statuses everywhere, and what is only permitted cannot be broken."),
    (
        "GEN-8",
        "It is about every input there is: the checks give some hostile ones, the project's fuzzers more.",
    ),
    ("DEV-CAP-8", "It says how a client reads the numbers."),
    ("PREP-4", "A task that cannot be started needs a hook inside the driver."),
    (
        "CACHE-1",
        "It says what the kinds of files are for; what follows for a driver is CACHE-9 and CACHE-12.",
    ),
    (
        "CACHE-16",
        "Who forges a whole file that passes must know its form, which is the driver's own.",
    ),
    ("CACHE-17", "It is the client's mistake, and no driver can notice it."),
    (
        "CACHE-18",
        "It needs two builds of the driver, and a call that says which preference and priority it expects, which the interface lacks.",
    ),
    (
        "MODEL-2",
        "Who refuses such a graph keeps the text of the interface, so that either answer is right (decision 40).",
    ),
    ("EXT-5", "It needs an extension that the device has, whose types only its maker knows."),
    (
        "CF-8",
        "Who refuses such a model keeps the text of the interface, so that either answer is right (decision 40).",
    ),
    ("EXEC-12", "It binds the client; that the driver withstands another one is SEC-1."),
    ("TIME-3", "When the driver sees a call and when it answers is not seen from outside."),
    ("BURST-8", "It binds the client."),
    (
        "FENCE-8",
        "A kernel sync file that is in error cannot be made without the kernel's test module.",
    ),
    ("MEM-4", "Whoever maps the file sees what was written, whether or not it was synchronized."),
    (
        "QOS-8",
        "Loops would have to run for 15 seconds and more, and only our own limit could be reported from another one.",
    ),
    ("CONC-4", "It is a measurement on a quiet machine of known size, in the tests of our driver."),
    ("CONC-5", "A client that dies is a process of its own, which only a transport notices."),
    (
        "SEC-1",
        "The moment between two reads of a value is met by chance only; it needs a hook inside the driver.",
    ),
    (
        "SEC-2",
        "What memory held before is seen by chance only, but for the packets of bursts (BURST-13).",
    ),
    ("SEC-3", "It is about all numbers in all input; BURST-6, CF-5 and MODEL-17 are checked."),
    (
        "SEC-4",
        "Two clients are two processes, and two devices two drivers, of which a check sees one.",
    ),
    ("IPC-1", "It is about the transport: a check calls methods, not numbers."),
    ("IPC-2", "It is about the transport: a check calls methods, not numbers."),
    ("IPC-5", "It needs a service that dies, in another process than the client."),
    ("IPC-7", "It is about the names of services, which a check does not look up."),
    ("IPC-8", "It is about the transport: a check passes values, not their layout."),
    ("CAPI-1", "It is about the C library, which tests/capi tests."),
    ("CAPI-2", "It is about the C library, which tests/capi tests."),
    ("CAPI-3", "It is about the reference runtime's files."),
];
