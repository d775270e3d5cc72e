//! What may be claimed from samples (L0 and L1 of the statistics).
