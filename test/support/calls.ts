import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { ROOT } from '../../apps/platform/base/paths.ts'
import type { Stack } from './stack.ts'
import { until } from './until.ts'

/**
 * How often each of our functions is called in a running app, by V8's own counters. A signal opens the inspector of the
 * process, which otherwise runs as usual. The stack is started with NODE_OPTIONS=INSPECTABLE.
 */
export const INSPECTABLE = '--inspect-port=0'

/** Calls of each function since the last look: by file, then by name and place. */
export type Calls = Map<string, Map<string, number>>

type Message = { id?: number; method?: string; params?: Record<string, unknown>; result?: unknown; error?: unknown }
type Ask = <T = unknown>(method: string, params?: object) => Promise<T>
type Script = {
  scriptId: string
  url: string
  functions: { functionName: string; ranges: { count: number; startOffset: number }[] }[]
}

/** The protocol session with the inspector of one thread: `deliver` takes its messages. */
const conversation = (send: (text: string) => void) => {
  const open = new Map<number, { resolve: (value: never) => void; reject: (error: Error) => void }>()
  const ask: Ask = (method, params = {}) =>
    new Promise((resolve, reject) => {
      const id = open.size + 1
      open.set(id, { resolve, reject })
      send(JSON.stringify({ id, method, params }))
    })
  const deliver = ({ id = 0, result, error }: Message) => {
    if (error) open.get(id)?.reject(new Error(JSON.stringify(error)))
    else open.get(id)?.resolve(result as never)
  }
  return { ask, deliver }
}

/** Opens the inspectors of an app: that of its main thread, and one for each worker thread, where workflows run. */
export const watchCalls = async (stack: Stack, app: string) => {
  const pid = stack.pid(app)
  if (pid === undefined) throw new Error(`${app} does not run`)
  process.kill(pid, 'SIGUSR1')
  const address = () => /Debugger listening on (ws:\S+)/.exec(readFileSync(stack.log(app), 'utf8'))?.[1]
  const socket = new WebSocket(await until(address, { what: `the inspector of ${app}`, timeout_ms: 20_000 }))
  await new Promise((resolve, reject) => {
    socket.onopen = resolve
    socket.onerror = reject
  })
  const main = conversation((text) => socket.send(text))
  const threads = new Map<unknown, ReturnType<typeof conversation>>()
  socket.onmessage = ({ data }) => {
    const message = JSON.parse(String(data)) as Message
    const { sessionId, message: inner } = message.params ?? {}
    if (message.method === 'NodeWorker.attachedToWorker') {
      const send = (text: string) => void main.ask('NodeWorker.sendMessageToWorker', { sessionId, message: text })
      threads.set(sessionId, conversation(send))
    } else if (message.method === 'NodeWorker.receivedMessageFromWorker')
      threads.get(sessionId)?.deliver(JSON.parse(String(inner)) as Message)
    else main.deliver(message)
  }
  await main.ask('NodeWorker.enable', { waitForDebuggerOnStart: false })
  const asks = [main, ...threads.values()].map(({ ask }) => ask)
  for (const ask of asks) {
    await ask('Debugger.enable')
    await ask('Profiler.enable')
    await ask('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
  }
  const sources = new Map<string, string>()
  return {
    take: async (): Promise<Calls> => {
      const calls: Calls = new Map()
      for (const ask of asks) {
        const { result } = await ask<{ result: Script[] }>('Profiler.takePreciseCoverage')
        for (const script of result) count(calls, script, await fileIn(script, ask, sources))
      }
      return calls
    },
    close: () => socket.close(),
  }
}

const count = (calls: Calls, { url, functions }: Script, fileAt: (offset: number) => string | undefined) => {
  for (const { functionName, ranges } of functions) {
    const { count = 0, startOffset = 0 } = ranges[0] ?? {}
    const file = fileAt(startOffset)
    // The body of a module runs once, when it is loaded.
    if (file === undefined || count === 0 || (startOffset === 0 && functionName === '')) continue
    const known = calls.get(file) ?? new Map<string, number>()
    const name = `${functionName}@${url}:${startOffset}`
    known.set(name, (known.get(name) ?? 0) + count)
    calls.set(file, known)
  }
}

/** Returns which of our files a place in a script belongs to: workflows are bundled, each module under its name. */
const fileIn = async ({ scriptId, url }: Script, ask: Ask, sources: Map<string, string>) => {
  if (!url.startsWith('file:')) return () => undefined
  const file = fileURLToPath(url).slice(ROOT.length + 1)
  if (!/^workflow-bundle-\w+\.js$/.test(file)) return () => file
  const source =
    sources.get(url) ?? (await ask<{ scriptSource: string }>('Debugger.getScriptSource', { scriptId })).scriptSource
  sources.set(url, source)
  const modules = [...source.matchAll(/^\/\*\*\*\/ "\.\/([^"]+)"/gm)]
  return (offset: number) => modules.findLast(({ index }) => index <= offset)?.[1]
}
