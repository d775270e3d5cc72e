//! What a kernel's configuration says about preemption.

use std::path::Path;

use anyhow::{Context, Result, bail};
use punctual_core::kconfig;
use punctual_core::preemption::Model;
use punctual_core::release::series_of;
use punctual_sys::file;

use super::sums;

/// The largest configuration that is read, bytes; they have about 300 kB.
pub(crate) const MOST_CONFIG: u64 = 16 << 20;

/// The first Linux that can have lazy preemption.
const LAZY: [u32; 2] = [6, 13];

/// The first Linux that has neither none nor voluntary preemption on architectures with lazy one.
const ONLY_LAZY: [u32; 2] = [7, 0];

/// The first two numbers of a release.
fn version(release: &str) -> [u32; 2] {
    let mut numbers = series_of(release).split('.').map(|part| part.parse().unwrap_or(0));
    [numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)]
}

/// The models that a release of Debian's kernel for x86_64 has.
pub(super) fn models_of(release: &str) -> &'static [Model] {
    if version(release) >= ONLY_LAZY {
        &[Model::Full, Model::Lazy, Model::Rt]
    } else {
        &[Model::None, Model::Voluntary, Model::Full, Model::Rt]
    }
}

/// A kernel's configuration file.
pub(super) struct Config(String);

impl Config {
    /// Reads the file.
    ///
    /// # Errors
    /// It cannot be read, or has changed since it was fetched.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let text = file::read_text(path, MOST_CONFIG)
            .with_context(|| format!("cannot read {}", path.display()))?;
        sums::check(path, text.as_bytes())?;
        Ok(Self(text))
    }

    /// What an image tells of a kernel without a configuration: whether its model can be changed
    /// (kernel/sched/core.c prints which one it is), and which release it is.
    pub(super) fn of_image(image: &[u8], release: &str) -> Self {
        const DYNAMIC: &[u8] = b"Dynamic Preempt: ";
        let mut text = String::new();
        if release.contains("-rt-") {
            text += "CONFIG_PREEMPT_RT=y\n";
        } else if image.windows(DYNAMIC.len()).any(|window| window == DYNAMIC) {
            text += "CONFIG_PREEMPT_DYNAMIC=y\n";
            if version(release) >= LAZY {
                text += "CONFIG_ARCH_HAS_PREEMPT_LAZY=y\n";
            }
        }
        Self(text)
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
    /// kernel of this release.
    pub(super) fn parameters(
        &self,
        asked: Model,
        package: &str,
        release: &str,
    ) -> Result<Vec<String>> {
        let own = self.model().unwrap_or_default();
        let dynamic = self.has("PREEMPT_DYNAMIC") && own != Model::Rt;
        let lazy = self.has("ARCH_HAS_PREEMPT_LAZY");
        let knows = match asked {
            Model::Lazy => lazy,
            // kernel/Kconfig.preempt, sched_dynamic_mode().
            Model::None | Model::Voluntary => !(lazy && version(release) >= ONLY_LAZY),
            _ => true,
        };
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
            Model::None | Model::Voluntary if dynamic => bail!(
                "{package} has no preemption model {asked}: since Linux 7.0 there are full and \
                 lazy, and rt in kernels of their own"
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
            assert_eq!(stock.parameters(model, "stock", "6.1.0-56-amd64").unwrap(), [parameter]);
            assert!(rt.parameters(model, "rt", "6.1.0-56-amd64").is_err());
        }
        assert_eq!(arm.parameters(Model::Voluntary, "arm", "6.1.0-56-amd64").unwrap(), [""; 0]);
        assert_eq!(rt.parameters(Model::Rt, "rt", "6.1.0-56-amd64").unwrap(), [""; 0]);
        let error = arm.parameters(Model::Full, "arm", "6.1.0-56-amd64").unwrap_err().to_string();
        assert!(error.contains("model full: its model is voluntary, fixed"), "{error}");
        let error = stock.parameters(Model::Rt, "stock", "6.1.0-56-amd64").unwrap_err().to_string();
        assert_eq!(error, "stock is built without CONFIG_PREEMPT_RT: its model is voluntary");

        let error =
            stock.parameters(Model::Lazy, "stock", "6.1.0-56-amd64").unwrap_err().to_string();
        assert!(error.starts_with("stock has no lazy preemption"), "{error}");
        let newer = config(&["PREEMPT_LAZY", "PREEMPT_DYNAMIC", "ARCH_HAS_PREEMPT_LAZY"]);
        for model in [Model::None, Model::Lazy] {
            let parameters = newer.parameters(model, "newer", "6.17.13+deb13-amd64").unwrap();
            assert_eq!(parameters, [format!("preempt={model}")]);
        }
        let latest = |model| newer.parameters(model, "latest", "7.3.4+deb13-amd64");
        for model in [Model::Full, Model::Lazy] {
            assert_eq!(latest(model).unwrap(), [format!("preempt={model}")]);
        }
        for model in [Model::None, Model::Voluntary] {
            let error = latest(model).unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("latest has no preemption model {model}")),
                "{error}"
            );
        }
    }

    #[test]
    fn an_image_without_a_configuration_tells_what_can_be_chosen() {
        let image = b"\0Dynamic Preempt: %s\n\0";
        let of = |release, model| Config::of_image(image, release).parameters(model, "x", release);
        assert_eq!(of("7.1.13+deb13-amd64", Model::Lazy).unwrap(), ["preempt=lazy"]);
        assert!(of("7.1.13+deb13-amd64", Model::None).is_err());
        assert_eq!(of("6.19.14+deb13-amd64", Model::None).unwrap(), ["preempt=none"]);
        assert!(of("7.1.13+deb13-amd64", Model::Rt).is_err());
        assert_eq!(of("7.1.13+deb13-rt-amd64", Model::Rt).unwrap(), [""; 0]);
        assert_eq!(Config::of_image(image, "7.1.13+deb13-amd64").model(), None);
        let fixed = Config::of_image(b"Linux", "7.1.13+deb13-amd64");
        assert!(fixed.parameters(Model::Full, "x", "7.1.13+deb13-amd64").is_err());
    }
}
