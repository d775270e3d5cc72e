//! An allocator that counts, for tests of the hot path.
