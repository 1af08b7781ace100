import manifest from '../../package.json' with { type: 'json' }

export const versionOfClient = (): string => manifest.version
