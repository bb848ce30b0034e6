/** What to say about an address that only this machine can use, as kind and minikube write it into kubeconfigs. */
export const loopbackWarning = (server: string): string | undefined => {
  const { hostname } = new URL(server)
  if (!/^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(hostname)) return undefined
  return `${server} can be reached from this machine only: where the agent runs elsewhere, kind among them, add --force-internal-endpoint-lookup to join, or use an address that it can reach`
}
