import { type Chain, verifyChain } from '../../shared/contracts/client/browser-chain.ts'

/** Recomputes an evidence chain off the main thread and answers once, with the result. */
self.onmessage = ({ data }: MessageEvent<Chain>) => {
  void verifyChain(data).then((result) => self.postMessage(result))
}
