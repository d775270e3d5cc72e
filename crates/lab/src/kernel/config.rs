//! What a kernel's configuration says about preemption.

use anyhow::{Result, bail};
use punctual_core::kconfig;

use super::spec::Model;

/// A kernel's configuration, as its build left it.
pub(super) struct Config(String);

impl Config {
    pub(super) fn new(text: String) -> Self {
        Self(text)
    }

    /// Whether an option (without `CONFIG_`) is built in.
    pub(super) fn has(&self, option: &str) -> bool {
        kconfig::is_set(&self.0, option)
    }

    /// The preemption model that the kernel has without a parameter.
    pub(super) fn model(&self) -> Option<&'static str> {
        // PREEMPT_RT first: kernels of Debian with it also have PREEMPT_LAZY, others PREEMPT.
        [
            ("PREEMPT_RT", "rt"),
            ("PREEMPT_NONE", "none"),
            ("PREEMPT_VOLUNTARY", "voluntary"),
            ("PREEMPT", "full"),
            ("PREEMPT_LAZY", "lazy"),
        ]
        .into_iter()
        .find_map(|(option, model)| self.has(option).then_some(model))
    }

    /// The parameters that give the kernel a model, none where it has it by itself.
    ///
    /// # Errors
    /// It cannot have that model; the text says which one it has. `package` names the kernel.
    pub(super) fn parameters(&self, asked: Model, package: &str) -> Result<Vec<String>> {
        let own = self.model();
        let dynamic = self.has("PREEMPT_DYNAMIC") && own != Some("rt");
        // The parameter is given for the default too: models differ by its value alone.
        if dynamic && asked != Model::Rt {
            return Ok(vec![format!("preempt={}", asked.name())]);
        }
        if own == Some(asked.name()) {
            return Ok(Vec::new());
        }
        let (asked, own) = (asked.name(), own.unwrap_or("unknown"));
        match asked {
            "rt" => bail!("{package} is built without CONFIG_PREEMPT_RT: its model is {own}"),
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
        Config::new(text)
    }

    #[test]
    fn models_are_the_ones_of_debian_s_kernels() {
        // linux-image-6.1.0-56-amd64, -rt-amd64 and -arm64.
        let stock = config(&["PREEMPT_BUILD", "PREEMPT_VOLUNTARY", "PREEMPT_DYNAMIC"]);
        let rt = config(&["PREEMPT_LAZY", "PREEMPT_RT"]);
        let arm = config(&["PREEMPT_VOLUNTARY_BUILD", "PREEMPT_VOLUNTARY"]);
        assert_eq!(stock.model(), Some("voluntary"));
        assert_eq!(rt.model(), Some("rt"));
        assert_eq!(arm.model(), Some("voluntary"));
        assert_eq!(config(&["PREEMPT"]).model(), Some("full"));
        assert_eq!(config(&[]).model(), None);

        for model in [Model::None, Model::Voluntary, Model::Full] {
            let parameter = format!("preempt={}", model.name());
            assert_eq!(stock.parameters(model, "stock").unwrap(), [parameter]);
            assert!(rt.parameters(model, "rt").is_err());
        }
        assert_eq!(arm.parameters(Model::Voluntary, "arm").unwrap(), [""; 0]);
        assert_eq!(rt.parameters(Model::Rt, "rt").unwrap(), [""; 0]);
        let error = arm.parameters(Model::Full, "arm").unwrap_err().to_string();
        assert!(error.contains("model full: its model is voluntary, fixed"), "{error}");
        let error = stock.parameters(Model::Rt, "stock").unwrap_err().to_string();
        assert_eq!(error, "stock is built without CONFIG_PREEMPT_RT: its model is voluntary");
    }
}
