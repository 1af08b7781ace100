/** Of Node, and of the tests that kill a process at a given place. */
const OUTSIDE: ReadonlySet<string> = new Set(['NODE_ENV', 'SIGNALBOX_CRASH_AT'])
/** Commands for developers and the command line, which read the environment themselves. */
const TOOLS = /^apps\/(platform|cli|client|console)\//
const READ = /process\.env\.(\w+)/g
const NAMED = /(?<![\w<])[A-Z]+(?:__[A-Z0-9]+(?:_[A-Z0-9]+)*)+(?![\w{<])/g

export type Text = { file: string; text: string }

/** Settings that a document names but no schema has, and those that code of an app reads outside a schema. */
export const unknownSettings = (texts: readonly Text[], known: ReadonlySet<string>): string[] => {
  const areas = new Set([...known].map((name) => name.split('__')[0]))
  return texts.flatMap(({ file, text }) => {
    if (/^(apps|activities|db|workflows)\/.*\.ts$/.test(file) && !TOOLS.test(file))
      return [...text.matchAll(READ)]
        .filter(([, name = '']) => !OUTSIDE.has(name))
        .map(([, name]) => `${file}: ${name} is read outside a schema`)
    if (!file.endsWith('.md')) return []
    // A document of an app may leave out the app's name, and a secret may be in a file.
    const owner = file.split('/')[1]?.toUpperCase()
    const isKnown = (name: string) =>
      [name, `${owner}__${name}`, name.replace(/_FILE$/, '')].some((one) => known.has(one))
    return [...new Set(text.match(NAMED))]
      .filter((name) => areas.has(name.split('__')[0]) && !isKnown(name))
      .map((name) => `${file}: no schema has the setting ${name}`)
  })
}
