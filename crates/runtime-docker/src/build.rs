//! Builds images on a Docker Engine. Never needed to start a sandbox: any image will do for that.
//!
//! A [`BuildOrder`] is a Dockerfile with its context; a [`Recipe`] is a base image with what is to
//! be in it beside, whose parts are found again by `recipe`'s names. Either way `context` or
//! `archive` packs what is sent, `dockerfile` finds out which images that builds on, `call` asks
//! the Engine, and `progress` tells what it answers.

mod archive;
mod call;
mod context;
mod customer;
mod dockerfile;
mod error;
mod ignore;
mod line;
mod make;
mod order;
mod pack;
mod progress;
mod recipe;
mod request;
mod sent;
mod trace;
mod transport;

use std::sync::{Arc, OnceLock};

use serde_json::Value;

use crate::{
    EngineFault, PullPolicy,
    docker::Shared,
    image::{matches, with_tag},
};

pub use error::BuildError;
pub use order::{
    BuildManner, BuildOrder, BuildSource, BuilderChoice, BuiltImage, ImageSummary, PruneOrder,
    Pruned, Reuse,
};
pub use pack::ContextLimits;
pub use progress::{BuildEvent, BuildListener, StepState, as_statuses};
pub use recipe::{BuiltFrom, Recipe, RecipeFiles, RecipeNames};

pub(crate) use line::Line;

use call::EngineHttp;
use customer::Customer;
use dockerfile::{Needs, is_image_name};
use request::Request;
use sent::{Context, blocking};

/// Names that one image may be given at once.
const NAMES_MAX: usize = 16;

/// Builds images on the Engine of a runtime, within what its options allow: `allowed.images` holds
/// for the names of what is built and for what it builds on, `pull` says whether missing images
/// are fetched, and steps reach what `network` says.
///
/// Builds for clients wait in line, one at a time for each of them, and a client may only give
/// names that nobody has, no registry either from which others would get them, or that it has
/// given before.
///
/// Dropping the future of a build ends the build.
#[derive(Clone, Debug)]
pub struct ImageBuilder {
    shared: Arc<Shared>,
    customer: Customer,
    /// Made when it is needed for the first time.
    http: Arc<OnceLock<EngineHttp>>,
}

impl ImageBuilder {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            customer: Customer::Client(String::new()),
            http: Arc::default(),
        }
    }

    /// The same for whoever runs this, who may give any name and never waits.
    pub fn for_operator(&self) -> Self {
        Self {
            customer: Customer::Operator,
            ..self.clone()
        }
    }

    /// The same for a client, by a name that no other one has.
    pub fn on_behalf_of(&self, client: &str) -> Self {
        Self {
            customer: Customer::Client(client.to_owned()),
            ..self.clone()
        }
    }

    /// Builds an image from a Dockerfile.
    ///
    /// # Errors
    /// When the context or the Dockerfile is not one that is taken, when an image is not allowed or
    /// not there, or when a step fails.
    pub async fn build(
        &self,
        order: BuildOrder,
        listener: &BuildListener,
    ) -> Result<BuiltImage, BuildError> {
        self.check_names(&order.names)?;
        let _turn = self.turn(&order.names).await?;
        self.check_owned(&order.names).await?;
        let directory = self.shared.directory.clone();
        let (source, limits) = (order.source, order.manner.limits);
        let context = blocking(move || Context::pack(source, &directory, limits)).await?;
        let needs = Needs::of(&context.text, &order.arguments);
        self.check_needs(&needs, order.platform.as_deref(), listener)
            .await?;
        let request = Request {
            names: order.names,
            platform: order.platform,
            arguments: order.arguments,
            manner: order.manner,
        };
        self.send(request, context, BuiltFrom::Base, listener).await
    }

    /// A file without a name for a context that arrives from elsewhere, where there is room for it.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn scratch(&self) -> std::io::Result<std::fs::File> {
        tempfile::tempfile_in(&self.shared.directory)
    }

    /// What the Engine knows of an image; `None` when it does not have it.
    ///
    /// # Errors
    /// When it cannot be asked, or the image is not allowed.
    pub async fn find(&self, image: &str) -> Result<Option<ImageSummary>, BuildError> {
        check_name(image)?;
        self.check_allowed(image)?;
        let found = self.look_up(image).await?;
        let text = |found: &Value, key| found[key].as_str().unwrap_or_default().to_owned();
        Ok(found.map(|found| ImageSummary {
            id: text(&found, "Id"),
            created: text(&found, "Created"),
            bytes: found["Size"].as_u64().unwrap_or_default(),
        }))
    }

    /// Whether the registry of an image has it, as the Engine sees that. Nothing is fetched.
    ///
    /// # Errors
    /// When the registry cannot be asked, or the image is not allowed.
    pub async fn is_in_registry(&self, image: &str) -> Result<bool, BuildError> {
        check_name(image)?;
        self.check_allowed(image)?;
        let deed = format!("look for the image `{image}` in its registry");
        let path = format!("/distribution/{image}/json");
        match self.http()?.get(&deed, &path).await {
            Ok(found) => Ok(found.is_some()),
            // Registries say that of what is not there, so as not to tell what is.
            Err(BuildError::Engine(error)) if error.fault == EngineFault::Denied => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Whether images that are missing may be fetched.
    pub fn may_fetch(&self) -> bool {
        self.shared.options.pull == PullPolicy::Missing
    }

    /// Removes what the Engine keeps of earlier builds. Images stay.
    ///
    /// # Errors
    /// When the Engine cannot do it.
    pub async fn prune(&self, order: &PruneOrder) -> Result<Pruned, BuildError> {
        let mut query = Vec::new();
        if order.all {
            query.push(("all", "true".to_owned()));
        }
        if let Some(bytes) = order.keep_bytes {
            // The first by its old name, the second by its new one.
            query.push(("keep-storage", bytes.to_string()));
            query.push(("reserved-space", bytes.to_string()));
        }
        let answer = self.http()?.prune(&query).await?;
        Ok(Pruned {
            results: answer["CachesDeleted"].as_array().map_or(0, Vec::len),
            bytes: answer["SpaceReclaimed"].as_u64().unwrap_or_default(),
        })
    }

    fn http(&self) -> Result<EngineHttp, BuildError> {
        if let Some(http) = self.http.get() {
            return Ok(http.clone());
        }
        let http = EngineHttp::new(&self.shared.options.engine)?;
        Ok(self.http.get_or_init(|| http).clone())
    }

    /// A registry that cannot be asked has nothing for us: the image is then built.
    async fn fetch_if_there(
        &self,
        image: &str,
        platform: Option<&str>,
        listener: &BuildListener,
    ) -> Result<bool, BuildError> {
        if !self.may_fetch() {
            return Ok(false);
        }
        match self.is_in_registry(image).await {
            Ok(true) => self.fetch(image, platform, listener).await.map(|()| true),
            Ok(false) => Ok(false),
            Err(error) => {
                tracing::debug!(image, %error, "a registry cannot be asked");
                Ok(false)
            }
        }
    }

    async fn fetch(
        &self,
        image: &str,
        platform: Option<&str>,
        listener: &BuildListener,
    ) -> Result<(), BuildError> {
        let engine = self.shared.engine().await?;
        let tell = |status: &str| {
            listener(&BuildEvent::Fetching {
                image: image.to_owned(),
                status: status.to_owned(),
            });
        };
        Ok(engine.pull(&with_tag(image), platform, tell).await?)
    }

    fn check_names(&self, names: &[String]) -> Result<(), BuildError> {
        if names.is_empty() || names.len() > NAMES_MAX {
            let reason = format!("an image needs a name, and has {NAMES_MAX} at most");
            return Err(BuildError::invalid(reason));
        }
        for name in names {
            check_name(name)?;
            self.check_allowed(name)?;
        }
        Ok(())
    }

    /// All that the Engine knows of an image.
    async fn look_up(&self, image: &str) -> Result<Option<Value>, BuildError> {
        let deed = format!("inspect the image `{image}`");
        let path = format!("/images/{image}/json");
        self.http()?.get(&deed, &path).await
    }

    fn check_allowed(&self, image: &str) -> Result<(), BuildError> {
        let patterns = self.shared.options.allowed.images.as_ref();
        let fits = |patterns: &Vec<String>| patterns.iter().any(|it| matches(it, image));
        if patterns.is_none_or(fits) {
            return Ok(());
        }
        let image = image.to_owned();
        Err(BuildError::NotAllowed { image })
    }

    /// All that is built on must be allowed, and there.
    async fn check_needs(
        &self,
        needs: &Needs,
        platform: Option<&str>,
        listener: &BuildListener,
    ) -> Result<(), BuildError> {
        if !needs.has_begun() {
            return Err(BuildError::dockerfile("it has no FROM"));
        }
        let has_list = self.shared.options.allowed.images.is_some();
        if let Some(doubt) = needs.doubts.first().filter(|_| has_list) {
            let reason = format!(
                "it cannot be told which images it builds on, because of {doubt}; with \
                 `docker.allowed_images` they must all be named plainly"
            );
            return Err(BuildError::dockerfile(reason));
        }
        for image in &needs.images {
            self.check_allowed(image)?;
        }
        for image in &needs.images {
            if self.find(image).await?.is_some() {
                continue;
            }
            if !self.may_fetch() {
                let image = image.clone();
                return Err(BuildError::Missing { image });
            }
            self.fetch(image, platform, listener).await?;
        }
        Ok(())
    }

    async fn send(
        &self,
        request: Request,
        context: Context,
        from: BuiltFrom,
        listener: &BuildListener,
    ) -> Result<BuiltImage, BuildError> {
        let mut query = request.query(&self.shared, &context.dockerfile).await?;
        let labels = self.customer.labels(&self.shared, &request.names);
        query.extend(labels.map(|labels| ("labels", labels.to_string())));
        let http = self.http()?;
        let packed = (context.packed.file, context.packed.length);
        let building = http.build(&query, packed, listener);
        let waited = request.manner.patience;
        let built = tokio::time::timeout(waited, building).await;
        built.map_err(|_| BuildError::TimedOut { waited })??;
        self.built(request.names, from, context.packed.left_out)
            .await
    }

    async fn built(
        &self,
        names: Vec<String>,
        from: BuiltFrom,
        left_out: usize,
    ) -> Result<BuiltImage, BuildError> {
        let name = names.first().cloned().unwrap_or_default();
        let found = self.find(&name).await?;
        let found = found.ok_or(BuildError::Missing { image: name })?;
        Ok(BuiltImage {
            id: found.id,
            names,
            from,
            left_out,
        })
    }
}

fn check_name(name: &str) -> Result<(), BuildError> {
    // It becomes a part of a path.
    if is_image_name(name) && !name.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return Ok(());
    }
    Err(BuildError::invalid(format!(
        "`{name}` is no name of an image"
    )))
}
