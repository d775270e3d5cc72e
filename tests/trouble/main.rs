//! Bad input and trouble, each for real: a full disk, a control group without
//! budget, a user without rights, a load that dies. A clear error or label, the
//! right exit status, and nothing measured is lost.

mod boards;
mod costs;
mod damage;
mod folders;
mod guests;
mod hostile;
mod instance;
mod loads;
mod requests;
mod rights;
mod spaces;
mod stops;
mod trace;
