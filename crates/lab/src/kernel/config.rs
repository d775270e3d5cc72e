//! What a kernel's configuration says about preemption.

use std::path::Path;

use anyhow::{Context, Result, bail};
use punctual_core::kconfig;
use punctual_core::preemption::Model;
use punctual_sys::file;

/// The largest configuration that is read, bytes; they have about 300 kB.
pub(crate) const MOST_CONFIG: u64 = 16 << 20;

/// A kernel's configuration file.
pub(super) struct Config(String);

impl Config {
    /// Reads the file.
    ///
    /// # Errors
    /// It cannot be read.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let text = file::read_text(path, MOST_CONFIG)
            .with_context(|| format!("cannot read {}", path.display()))?;
        Ok(Self(text))
    }

    /// Whether an option (without `CONFIG_`) is built in.
    pub(super) fn has(&self, option: &str) -> bool {
        kconfig::is_set(&self.0, option)
    }

    /// The kernel's default preemption model.
    pub(super) fn model(&self) -> Option<Model> {
        Model::built_in(|option| self.has(option))
    }

    /// The parameters that select a model; empty if it is the only one the kernel has.
    ///
    /// # Errors
    /// The kernel cannot have that model; the text says which one it has. `package` names the
    /// kernel.
    pub(super) fn parameters(&self, asked: Model, package: &str) -> Result<Vec<String>> {
        let own = self.model().unwrap_or_default();
        let dynamic = self.has("PREEMPT_DYNAMIC") && own != Model::Rt;
        // Lazy preemption and this option came with Linux 6.13.
        let knows = asked != Model::Lazy || self.has("ARCH_HAS_PREEMPT_LAZY");
        // The parameter is also given for the default, so that models differ only by its value.
        if dynamic && knows && asked.is_parameter() {
            return Ok(vec![format!("preempt={asked}")]);
        }
        if own == asked {
            return Ok(Vec::new());
        }
        match asked {
            Model::Rt => bail!("{package} is built without CONFIG_PREEMPT_RT: its model is {own}"),
            Model::Lazy if dynamic => bail!(
                "{package} has no lazy preemption (no CONFIG_ARCH_HAS_PREEMPT_LAZY: Linux 6.13 is \
                 the first that can have it); its model is {own}"
            ),
            _ => bail!(
                "{package} cannot be booted with preemption model {asked}: its model is {own}, \
                 fixed when it was built (no CONFIG_PREEMPT_DYNAMIC)"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(options: &[&str]) -> Config {
        let mut text = String::from("# CONFIG_PREEMPT_NONE is not set\nCONFIG_PREEMPTION=y\n");
        for option in options {
            text += &format!("CONFIG_{option}=y\n");
        }
        Config(text)
    }

    #[test]
    fn models_are_the_ones_of_debian_s_kernels() {
        // linux-image-6.1.0-56-amd64, -rt-amd64 and -arm64.
        let stock = config(&["PREEMPT_BUILD", "PREEMPT_VOLUNTARY", "PREEMPT_DYNAMIC"]);
        let rt = config(&["PREEMPT_LAZY", "PREEMPT_RT"]);
        let arm = config(&["PREEMPT_VOLUNTARY_BUILD", "PREEMPT_VOLUNTARY"]);
        assert_eq!(stock.model(), Some(Model::Voluntary));
        assert_eq!(rt.model(), Some(Model::Rt));
        assert_eq!(arm.model(), Some(Model::Voluntary));
        assert_eq!(config(&["PREEMPT"]).model(), Some(Model::Full));
        assert_eq!(config(&[]).model(), None);

        for model in [Model::None, Model::Voluntary, Model::Full] {
            let parameter = format!("preempt={model}");
            assert_eq!(stock.parameters(model, "stock").unwrap(), [parameter]);
            assert!(rt.parameters(model, "rt").is_err());
        }
        assert_eq!(arm.parameters(Model::Voluntary, "arm").unwrap(), [""; 0]);
        assert_eq!(rt.parameters(Model::Rt, "rt").unwrap(), [""; 0]);
        let error = arm.parameters(Model::Full, "arm").unwrap_err().to_string();
        assert!(error.contains("model full: its model is voluntary, fixed"), "{error}");
        let error = stock.parameters(Model::Rt, "stock").unwrap_err().to_string();
        assert_eq!(error, "stock is built without CONFIG_PREEMPT_RT: its model is voluntary");

        let error = stock.parameters(Model::Lazy, "stock").unwrap_err().to_string();
        assert!(error.starts_with("stock has no lazy preemption"), "{error}");
        let newer = config(&["PREEMPT_LAZY", "PREEMPT_DYNAMIC", "ARCH_HAS_PREEMPT_LAZY"]);
        for model in [Model::None, Model::Lazy] {
            let parameters = newer.parameters(model, "newer").unwrap();
            assert_eq!(parameters, [format!("preempt={model}")]);
        }
    }
}
