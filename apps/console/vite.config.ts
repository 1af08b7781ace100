import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import tailwindcss from '@tailwindcss/vite'
import react from '@vitejs/plugin-react'
import { defineConfig, type Plugin } from 'vite'

const root = import.meta.dirname
const gateway = process.env.SIGNALBOX_GATEWAY ?? 'http://127.0.0.1:8080'
/** A language other than English: each has a separate build, so that no page carries the texts of another. */
const language = process.env.SIGNALBOX_CONSOLE_LANGUAGE

/** Builds the files that the gateway serves: index.html (or index.<language>.html) and hashed, immutable /assets. */
export default defineConfig({
  root,
  publicDir: false,
  plugins: [react(), tailwindcss(), themeScript(), ownAddresses(), ...(language ? [inLanguage(language)] : [])],
  build: {
    outDir: process.env.SIGNALBOX_CONSOLE_DIR ?? resolve(root, '../../.signalbox/console'),
    emptyOutDir: false,
    manifest: language ? `.vite/manifest.${language}.json` : true,
    // Third-party code with its notices: for the bill of materials, and because the licenses require it.
    license: { fileName: language ? `.vite/license.${language}.json` : '.vite/license.json' },
    // The policy does not allow data: scripts, styles or fonts, so no file is inlined.
    assetsInlineLimit: 0,
    target: 'es2023',
    // Every browser of this target preloads modules natively.
    modulePreload: { polyfill: false },
    rolldownOptions: {
      output: {
        // Keeps requests before the first screen few; one script is also smaller than its parts.
        codeSplitting: {
          groups: [
            { name: 'entry', tags: ['$initial'] },
            {
              name: 'decide',
              test: /console\/(words\/decide|votes\/(votes|releases)|values\/(links|person)|ui\/(failure|copy)|kit\/wish|command\/allowed)\.|contracts\/(client\/digest|watch)\./,
            },
            { name: 'list', test: /console\/(ui\/table|queries\/pages)\.|\/(useI|i)nfiniteQuery\w*\./ },
            { name: 'brief', test: /console\/votes\/brief\./ },
            { name: 'links', test: /console\/account\/links\// },
          ],
        },
      },
    },
    // The elk worker is one generated file of 1.6 MB that only the graph page fetches.
    chunkSizeWarningLimit: 600,
  },
  server: {
    port: 5173,
    strictPort: false,
    proxy: Object.fromEntries(['/api', '/auth', '/v1'].map((prefix) => [prefix, { target: gateway }])),
  },
})

/** Emits theme.js as a hashed asset for index.html. It runs before the first paint, so it is not a module. */
function themeScript(): Plugin {
  let reference = ''
  return {
    name: 'signalbox-theme-script',
    apply: 'build',
    // Runs after Vite has written index.html.
    enforce: 'post',
    async buildStart() {
      const source = await readFile(resolve(root, 'theme.js'), 'utf8')
      reference = this.emitFile({ type: 'asset', name: 'theme.js', source })
    },
    generateBundle(_options, bundle) {
      const page = bundle['index.html']
      if (page?.type !== 'asset') return
      page.source = String(page.source).replace('/theme.js', `/${this.getFileName(reference)}`)
    },
  }
}

/** Emits the files that browsers request by fixed names, and points index.html at the manifest unchanged. */
function ownAddresses(): Plugin {
  const names = ['sw.js', 'manifest.webmanifest', 'icon-192.png', 'icon-512.png']
  const iconText = async () =>
    `data:image/svg+xml,${encodeURIComponent(await readFile(resolve(root, 'favicon.svg'), 'utf8'))}`
  const link = (rel: string, href: string) => ({ tag: 'link', attrs: { rel, href }, injectTo: 'head' as const })
  return {
    name: 'signalbox-own-addresses',
    apply: 'build',
    async buildStart() {
      for (const fileName of names)
        this.emitFile({ type: 'asset', fileName, source: await readFile(resolve(root, fileName)) })
    },
    transformIndexHtml: {
      order: 'post',
      // Inlines the icon, which saves a request.
      handler: async (html) => ({
        html: html.replace(/(<link rel="icon"[^>]*href=")[^"]*/, `$1${await iconText()}`),
        tags: [link('manifest', '/manifest.webmanifest'), link('apple-touch-icon', '/icon-192.png')],
      }),
    },
  }
}

/** Resolves each module of words to the folder of its language, where it has the same keys. */
function inLanguage(language: string): Plugin {
  const words = resolve(root, 'words')
  return {
    name: 'signalbox-language',
    enforce: 'pre',
    async resolveId(source, importer, options) {
      const found = source.startsWith('.') ? await this.resolve(source, importer, { ...options, skipSelf: true }) : null
      if (!found?.id.startsWith(`${words}/`)) return null
      const twin = found.id.replace(words, `${words}-${language}`)
      return existsSync(twin) ? twin : found
    },
    transformIndexHtml: (html) => html.replace('lang="en"', `lang="${language}"`),
    generateBundle: {
      order: 'post',
      handler(_options, bundle) {
        const page = bundle['index.html']
        if (page) page.fileName = `index.${language}.html`
      },
    },
  }
}
