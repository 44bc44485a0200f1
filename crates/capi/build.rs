//! Gives the library its soname and, where the linker allows it, the versions of its symbols.

fn main() {
    nnhal_c_boundary::linking::configure("libneuralnetworks.so", "neuralnetworks.map");
}
