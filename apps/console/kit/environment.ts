import { shortId } from './format.ts'

/** The environment of this console, as the gateway wrote it into the page. */
const meta = (name: string): string =>
  document.querySelector<HTMLMetaElement>(`meta[name="signalbox-${name}"]`)?.content ?? ''

export type Tier = 'dev' | 'test' | 'prod'

const tier = meta('tier')

export const environment = {
  name: meta('environment') || 'local',
  tier: (tier === 'prod' || tier === 'test' ? tier : 'dev') as Tier,
  version: meta('version'),
}

/** In production, an irreversible command also asks for the operation's short id (console.md 6). */
export const confirmInProd = (operation_id: string): { confirm?: string } =>
  environment.tier === 'prod' ? { confirm: shortId(operation_id) } : {}
