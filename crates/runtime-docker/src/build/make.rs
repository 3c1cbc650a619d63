//! From a recipe to an image, by way of the best part of it that is there.

use std::path::Path;

use super::{
    BuildError, BuildEvent, BuildListener, BuildManner, BuiltFrom, BuiltImage, ContextLimits,
    ImageBuilder, Recipe, RecipeNames, Reuse, context,
    dockerfile::Needs,
    pack::Packer,
    recipe,
    request::Request,
    sent::{Context, blocking},
};

/// A recipe on its way to an image.
struct Making<'a> {
    recipe: &'a Recipe,
    names: &'a RecipeNames,
    /// What the Engine is asked for; its own kind of machine when that is nothing.
    platform: Option<&'a str>,
    manner: BuildManner,
    listener: &'a BuildListener,
}

impl ImageBuilder {
    /// Makes an image of a recipe, or finds the one that was made of it before.
    ///
    /// # Errors
    /// As with [`build`](Self::build).
    pub async fn make(
        &self,
        recipe: &Recipe,
        platform: Option<String>,
        manner: BuildManner,
        listener: &BuildListener,
    ) -> Result<BuiltImage, BuildError> {
        recipe.check()?;
        let platform = platform.or_else(|| self.shared.options.platform.clone());
        let for_machine = match &platform {
            Some(platform) => platform.clone(),
            None => self.shared.engine().await?.platform().await?,
        };
        let packer = self.pack_files(recipe, manner.limits).await?;
        let names = recipe.names(&for_machine, &packer.hash_so_far());
        let _turn = self.turn(&names.given(BuiltFrom::Base)).await?;
        let making = Making {
            recipe,
            names: &names,
            platform: platform.as_deref(),
            manner,
            listener,
        };
        let from = match manner.reuse {
            Reuse::Nothing => BuiltFrom::Base,
            Reuse::Everything => self.beginning(&making).await?,
        };
        if from == BuiltFrom::Nothing {
            let image = names.source.clone();
            listener(&BuildEvent::Reusing { image });
            return self.built(vec![names.source], from, 0).await;
        }
        if from != BuiltFrom::Lock {
            self.make_lock(&making, from).await?;
        }
        let text = recipe.with_files(&names);
        let source = vec![names.source.clone()];
        let built = self.make_part(&making, source, packer, text).await?;
        Ok(BuiltImage {
            names: names.given(from),
            from,
            ..built
        })
    }

    /// The base with the dependencies and without any files: those of an earlier build must not
    /// be in a later one.
    async fn make_lock(&self, making: &Making<'_>, from: BuiltFrom) -> Result<(), BuildError> {
        let names = making.names;
        let mut new_names = vec![names.lock.clone()];
        // Only from the base: otherwise each build would lie on top of the one before it.
        new_names.extend((from == BuiltFrom::Base).then(|| names.versioned.clone()));
        let directory = self.shared.directory.clone();
        let limits = making.manner.limits;
        let packer = blocking(move || Packer::new(&directory, limits)).await?;
        let text = making.recipe.dependencies(from, names);
        let made = self.make_part(making, new_names, packer, text).await;
        made.map(drop)
    }

    async fn make_part(
        &self,
        making: &Making<'_>,
        names: Vec<String>,
        packer: Packer,
        text: String,
    ) -> Result<BuiltImage, BuildError> {
        let listener = making.listener;
        self.check_names(&names)?;
        self.check_owned(&names).await?;
        let needs = Needs::of(&text, &[]);
        self.check_needs(&needs, making.platform, listener).await?;
        let context = blocking(move || Context::of_recipe(packer, text)).await?;
        let request = Request {
            names,
            platform: making.platform.map(str::to_owned),
            arguments: Vec::new(),
            manner: making.manner,
        };
        self.send(request, context, BuiltFrom::Base, listener).await
    }

    /// The best of the three that is there, or that its registry has. Anybody can tell these names
    /// beforehand, so what another client has built under one of them is not taken.
    async fn beginning(&self, making: &Making<'_>) -> Result<BuiltFrom, BuildError> {
        let names = making.names;
        if self.has_for_us(&names.source).await? {
            return Ok(BuiltFrom::Nothing);
        }
        for (name, from) in [
            (&names.lock, BuiltFrom::Lock),
            (&names.versioned, BuiltFrom::Versioned),
        ] {
            if self.has_for_us(name).await?
                || self
                    .fetch_if_there(name, making.platform, making.listener)
                    .await?
            {
                return Ok(from);
            }
        }
        Ok(BuiltFrom::Base)
    }

    async fn pack_files(
        &self,
        recipe: &Recipe,
        limits: ContextLimits,
    ) -> Result<Packer, BuildError> {
        let directory = self.shared.directory.clone();
        let files = recipe.files.as_ref().map(|files| files.directory.clone());
        blocking(move || {
            let mut packer = Packer::new(&directory, limits)?;
            if let Some(files) = files {
                context::pack(&files, None, Path::new(recipe::FILES), &mut packer)?;
            }
            Ok(packer)
        })
        .await
    }
}
