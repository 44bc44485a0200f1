//! IF equals its branch, WHILE equals its rounds (contract: CF-9), and what is inside of them may
//! have another shape each time.

mod branches;
mod changing_shapes;
mod rounds;
