//! The functions of the modules that a guest has loaded.

use punctual_core::schema::{Board, MODULES_MAX, ModuleAddress};

use super::functions::plain;
use crate::elf::Elf;
use crate::modules::Module;

/// The section of which a guest records the address.
const SECTION: &[u8] = b".text";

/// Address, size in bytes and name, as the kernel prints it, of the functions in the modules of a
/// guest's record. A module that it was not given has none.
pub(super) fn functions(board: &Board, given: &[Module]) -> Vec<(u64, u64, String)> {
    let loaded = board.modules.iter().take(MODULES_MAX);
    loaded.flat_map(|loaded| of_module(loaded, given)).collect()
}

fn of_module(loaded: &ModuleAddress, given: &[Module]) -> Vec<(u64, u64, String)> {
    let module = given.iter().find(|module| module.name == loaded.name);
    let symbols = module.and_then(|module| Elf::read(&module.bytes));
    let symbols = symbols.map(|elf| elf.functions(SECTION)).unwrap_or_default();
    let named = symbols.into_iter().filter_map(|symbol| {
        let name = format!("{} [{}]", plain(&symbol.name), loaded.name);
        Some((loaded.text.checked_add(symbol.at)?, symbol.size, name))
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elf::tests::object;

    #[test]
    fn functions_have_the_name_of_their_module() {
        let module = |name: &str, bytes: Vec<u8>| Module {
            name: name.to_owned(),
            file_name: format!("{name}.ko"),
            bytes,
            path: None,
        };
        let code = object(&[("hold_all", 2, 1, 0, 0x20), ("row.isra.0", 2, 1, 0x20, 8)]);
        let given = [module("hold", code), module("broken", b"text".to_vec())];
        let address = |name: &str, text| ModuleAddress { name: name.to_owned(), text };
        let at = |text| {
            let all = [address("other", 1), address("broken", 2), address("hold", text)];
            all.iter().flat_map(|loaded| of_module(loaded, &given)).collect::<Vec<_>>()
        };
        let named = |address, size, name: &str| (address, size, format!("{name} [hold]"));
        assert_eq!(at(0x1000), [named(0x1000, 0x20, "hold_all"), named(0x1020, 8, "row")]);
        assert_eq!(at(u64::MAX), [named(u64::MAX, 0x20, "hold_all")]);
    }
}
