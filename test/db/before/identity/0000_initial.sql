CREATE SCHEMA "identity";
--> statement-breakpoint
CREATE TABLE "identity"."grants" (
	"id" uuid PRIMARY KEY NOT NULL,
	"subject_type" text NOT NULL,
	"subject_id" text NOT NULL,
	"role" text NOT NULL,
	"scope" jsonb DEFAULT '{}'::jsonb NOT NULL,
	"expires_at" timestamp with time zone,
	"created_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	"created_by" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "identity"."group_members" (
	"group_key" text NOT NULL,
	"user_id" uuid NOT NULL,
	"added_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	CONSTRAINT "group_members_group_key_user_id_pk" PRIMARY KEY("group_key","user_id")
);
--> statement-breakpoint
CREATE TABLE "identity"."groups" (
	"group_key" text PRIMARY KEY NOT NULL,
	"name" text NOT NULL,
	"description" text,
	"version" bigint DEFAULT 1 NOT NULL,
	"created_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "identity"."idempotency" (
	"caller" text NOT NULL,
	"route" text NOT NULL,
	"key" text NOT NULL,
	"fingerprint" "bytea" NOT NULL,
	"command_id" uuid,
	"status" integer,
	"headers" jsonb,
	"body" "bytea",
	"created_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	CONSTRAINT "idempotency_caller_route_key_pk" PRIMARY KEY("caller","route","key")
);
--> statement-breakpoint
CREATE TABLE "identity"."outbox" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "identity"."outbox_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"event_id" uuid NOT NULL,
	"agg_type" text NOT NULL,
	"agg_id" text NOT NULL,
	"agg_version" bigint NOT NULL,
	"type" text NOT NULL,
	"schema_version" integer DEFAULT 1 NOT NULL,
	"payload" jsonb NOT NULL,
	"request_id" text,
	"trace" text,
	"occurred_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	"pub_seq" bigint,
	"js_seq" bigint,
	"published_at" timestamp with time zone,
	"parked" text,
	CONSTRAINT "outbox_event_id_unique" UNIQUE("event_id"),
	CONSTRAINT "outbox_pub_seq_unique" UNIQUE("pub_seq"),
	CONSTRAINT "outbox_agg_type_agg_id_agg_version_unique" UNIQUE("agg_type","agg_id","agg_version")
);
--> statement-breakpoint
CREATE TABLE "identity"."relay_state" (
	"name" text PRIMARY KEY NOT NULL,
	"epoch" bigint DEFAULT 0 NOT NULL,
	"next" bigint DEFAULT 1 NOT NULL,
	"stream_created" text,
	"js_last_seq" bigint
);
--> statement-breakpoint
CREATE TABLE "identity"."user_events" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "identity"."user_events_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	"actor" text NOT NULL,
	"on_behalf_of" text,
	"roles" text[] DEFAULT '{}' NOT NULL,
	"action" text NOT NULL,
	"object" text NOT NULL,
	"outcome" text NOT NULL,
	"reason" text,
	"before_hash" text,
	"after_hash" text,
	"request_id" text,
	"command_id" uuid,
	"body" text NOT NULL,
	"mac" text NOT NULL,
	"seal_seq" bigint,
	"prev_hash" text,
	"seal_hash" text,
	CONSTRAINT "user_events_seal_seq_unique" UNIQUE("seal_seq")
);
--> statement-breakpoint
CREATE TABLE "identity"."users" (
	"id" uuid PRIMARY KEY NOT NULL,
	"username" text NOT NULL,
	"folded" text NOT NULL,
	"status" text DEFAULT 'ACTIVE' NOT NULL,
	"version" bigint DEFAULT 1 NOT NULL,
	"created_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	"disabled_at" timestamp with time zone,
	CONSTRAINT "users_status" CHECK ("identity"."users"."status" in ('ACTIVE', 'DISABLED', 'DELETED'))
);
--> statement-breakpoint
ALTER TABLE "identity"."group_members" ADD CONSTRAINT "group_members_group_key_groups_group_key_fk" FOREIGN KEY ("group_key") REFERENCES "identity"."groups"("group_key") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "identity"."group_members" ADD CONSTRAINT "group_members_user_id_users_id_fk" FOREIGN KEY ("user_id") REFERENCES "identity"."users"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE UNIQUE INDEX "grants_once" ON "identity"."grants" USING btree ("subject_type","subject_id","role","scope");--> statement-breakpoint
CREATE INDEX "grants_role_index" ON "identity"."grants" USING btree ("role");--> statement-breakpoint
CREATE INDEX "group_members_user_id_index" ON "identity"."group_members" USING btree ("user_id");--> statement-breakpoint
CREATE INDEX "idempotency_created_at_index" ON "identity"."idempotency" USING btree ("created_at");--> statement-breakpoint
CREATE INDEX "outbox_id_index" ON "identity"."outbox" USING btree ("id") WHERE pub_seq is null;--> statement-breakpoint
CREATE INDEX "outbox_pub_seq_index" ON "identity"."outbox" USING btree ("pub_seq") WHERE published_at is null and pub_seq is not null;--> statement-breakpoint
CREATE INDEX "user_events_id_index" ON "identity"."user_events" USING btree ("id") WHERE seal_seq is null;--> statement-breakpoint
CREATE INDEX "user_events_actor_id_index" ON "identity"."user_events" USING btree ("actor","id");--> statement-breakpoint
CREATE INDEX "user_events_object_id_index" ON "identity"."user_events" USING btree ("object","id");--> statement-breakpoint
CREATE UNIQUE INDEX "users_folded" ON "identity"."users" USING btree ("folded");--> statement-breakpoint
CREATE INDEX "users_username_id_index" ON "identity"."users" USING btree ("username","id");