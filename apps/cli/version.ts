import manifest from '../../package.json' with { type: 'json' }

/** The version of this client: that of its package. */
export const versionOfClient = (): string => manifest.version
