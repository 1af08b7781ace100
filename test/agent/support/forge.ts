import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

type Request = { number: number; head: string; base: string; state: 'open' | 'closed'; merged: boolean }
/** The repository behind the forge: its branches, and a merge in it. */
type Repository = { headOf: (branch: string) => string; merge: (base: string, commit: string) => void }
type Call = { method: string; path: string; query: URLSearchParams; body: Record<string, string> }
type Answer = [status: number, body: unknown]

/**
 * A forge with the documented pull request calls of GitHub, Gitea and GitLab, over a real repository. `cut` drops the
 * answer to the next call that changes something, after the change is made.
 */
export const startForge = async ({ headOf, merge }: Repository, token: string) => {
  const requests: Request[] = []
  const state = { cut: false }
  const find = (head: string | null | undefined, base: string | null | undefined) =>
    requests.find((one) => one.state === 'open' && one.head === head && one.base === base)
  const open = (head = '', base = '', exists: number): Answer => {
    if (find(head, base)) return [exists, { message: 'A pull request already exists' }]
    if (headOf(head) === '' || headOf(head) === headOf(base))
      return [exists === 422 ? 422 : 404, { message: 'no commits' }]
    requests.push({ number: requests.length + 1, head, base, state: 'open', merged: false })
    return [201, shown(requests.at(-1) as Request)]
  }
  const shown = ({ head, base, ...one }: Request) => ({
    ...{ ...one, iid: one.number, head: { ref: head, sha: headOf(head) }, base: { ref: base } },
  })
  const gitlab = (one: Request) => ({
    iid: one.number,
    sha: headOf(one.head),
    state: one.merged ? 'merged' : one.state === 'open' ? 'opened' : 'closed',
  })
  const take = (number: string | undefined, sha: string | undefined): Answer => {
    const one = requests[Number(number) - 1]
    if (!one) return [404, {}]
    if (one.state !== 'open') return [405, { message: 'not mergeable' }]
    if (sha !== headOf(one.head)) return [409, { message: 'Head branch was modified' }]
    merge(one.base, sha)
    Object.assign(one, { state: 'closed', merged: true })
    return [200, { merged: true }]
  }
  const routes: [string, RegExp, (call: Call, ...parts: (string | undefined)[]) => Answer][] = [
    ['POST', /^\/github\/repos\/infra\/web\/pulls$/, ({ body }) => open(body.head, body.base, 422)],
    [
      'GET',
      /^\/github\/repos\/infra\/web\/pulls$/,
      ({ query }) => [
        200,
        [find(query.get('head')?.replace('infra:', ''), query.get('base'))]
          .filter((one) => one !== undefined)
          .map(shown),
      ],
    ],
    ['PUT', /^\/github\/repos\/infra\/web\/pulls\/(\d+)\/merge$/, ({ body }, number) => take(number, body.sha)],
    ['POST', /^\/gitea\/repos\/infra\/web\/pulls$/, ({ body }) => open(body.head, body.base, 409)],
    [
      'GET',
      /^\/(?:github|gitea)\/repos\/infra\/web\/pulls\/(\d+)$/,
      (_, number) => {
        const one = requests[Number(number) - 1]
        return one ? [200, shown(one)] : [404, {}]
      },
    ],
    [
      'GET',
      /^\/gitea\/repos\/infra\/web\/pulls\/main\/(.+)$/,
      (_, head) => {
        const one = find(decodeURIComponent(head ?? ''), 'main')
        return one ? [200, shown(one)] : [404, {}]
      },
    ],
    [
      'POST',
      /^\/gitea\/repos\/infra\/web\/pulls\/(\d+)\/merge$/,
      ({ body }, number) => (body.Do === 'merge' ? take(number, body.head_commit_id) : [422, {}]),
    ],
    [
      'POST',
      /^\/gitlab\/projects\/infra%2Fweb\/merge_requests$/,
      ({ body }) => open(body.source_branch, body.target_branch, 409),
    ],
    [
      'GET',
      /^\/gitlab\/projects\/infra%2Fweb\/merge_requests$/,
      ({ query }) => [
        200,
        [find(query.get('source_branch'), query.get('target_branch'))].filter((one) => one !== undefined).map(gitlab),
      ],
    ],
    [
      'GET',
      /^\/gitlab\/projects\/infra%2Fweb\/merge_requests\/(\d+)$/,
      (_, number) => {
        const one = requests[Number(number) - 1]
        return one ? [200, gitlab(one)] : [404, {}]
      },
    ],
    [
      'PUT',
      /^\/gitlab\/projects\/infra%2Fweb\/merge_requests\/(\d+)\/merge$/,
      ({ body }, number) => take(number, body.sha),
    ],
  ]
  const answer = async (req: IncomingMessage): Promise<Answer> => {
    const url = new URL(req.url ?? '', 'http://forge')
    const said = await text(req)
    if (req.headers.authorization !== token) return [401, { message: 'Bad credentials' }]
    const call = {
      method: req.method ?? '',
      path: url.pathname,
      query: url.searchParams,
      body: said ? JSON.parse(said) : {},
    }
    for (const [method, path, act] of routes) {
      const found = method === call.method ? path.exec(call.path) : null
      if (found) return act(call, ...found.slice(1))
    }
    return [404, { message: 'Not Found' }]
  }
  const server = createServer(async (req, res) => {
    const [status, body] = await answer(req)
    if (state.cut && req.method !== 'GET' && status < 300) {
      state.cut = false
      return req.socket.destroy()
    }
    res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    state,
    /** A person who closes a request, or merges it at the forge. */
    close: (one: Request | undefined) => Object.assign(one ?? {}, { state: 'closed' }),
    take: (one: Request) => take(String(one.number), headOf(one.head)),
    stop: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}
